{{- /* Where another release has brought the kind already, both use it. */}}
{{- define "dovetail.holdKind" -}}
{{- $there := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "holds.dovetail.dev" }}
{{- $owner := dig "metadata" "annotations" "meta.helm.sh/release-name" "" $there }}
{{- if or (not $there) (eq $owner .Release.Name) }}
---
# Whether new pods are held: one object, which `dovetail control` makes and writes, and the admission policy reads.
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: holds.dovetail.dev
  labels:
    {{- include "dovetail.labels" . | nindent 4 }}
spec:
  group: dovetail.dev
  scope: Cluster
  names:
    kind: Hold
    listKind: HoldList
    plural: holds
    singular: hold
  versions:
    - name: v1alpha1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            spec:
              type: object
              required: [held]
              properties:
                held:
                  type: boolean
                  description: Whether pods that are created now get the gate.
                since:
                  type: string
                  format: date-time
                  description: When that was written.
                why:
                  type: string
                  description: Why, in words.
      additionalPrinterColumns:
        - {name: Held, type: boolean, jsonPath: .spec.held}
        - {name: Since, type: date, jsonPath: .spec.since}
        - {name: Why, type: string, jsonPath: .spec.why}
{{- end }}
{{- end }}
