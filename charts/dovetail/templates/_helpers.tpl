{{- /* Right for a Service before Kubernetes 1.36 too: it begins with a letter, and has no dots. */}}
{{- define "dovetail.name" -}}
{{- $name := .Release.Name | replace "." "-" }}
{{- if regexMatch "^[0-9]" $name }}{{ $name = printf "dovetail-%s" $name }}
{{- else if not (contains "dovetail" $name) }}{{ $name = printf "%s-dovetail" $name }}
{{- end }}
{{- $name | trunc 40 | trimAll "-" }}
{{- end }}

{{- /* The name is never .Chart.Name, which may be an alias: `dovetail drain` and the other commands look for it. */}}
{{- define "dovetail.selector" -}}
app.kubernetes.io/name: dovetail
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "dovetail.labels" -}}
{{ include "dovetail.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* Checked here and not by the schema, whose complaint would be the patterns themselves. */}}
{{- define "dovetail.clusterIP" -}}
{{- $address := .Values.existing.clusterIP }}
{{- $byte := "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])" }}
{{- $v4 := regexMatch (printf "^(%s[.]){3}%s$" $byte $byte) $address }}
{{- $group := "[0-9A-Fa-f]{1,4}" }}
{{- $whole := regexMatch (printf "^(%s:){7}%s$" $group $group) $address }}
{{- $some := printf "(%s(:%s){0,6})?" $group $group }}
{{- $shortened := and (regexMatch (printf "^%s::%s$" $some $some) $address) (le (len (compact (splitList ":" $address))) 7) }}
{{- if not (or $v4 $whole $shortened) }}
{{- fail (printf `existing.clusterIP is %q; accepted in mode existing: a free IP address of the cluster's service range, such as 10.96.0.250, and no name, because kube-scheduler cannot resolve names of the cluster. docs/guide/install.md says how to choose one.` $address) }}
{{- end }}
{{- $address }}
{{- end }}

{{- /* Where kube-scheduler calls us: inside the pod, or at the Service's address (in brackets for IPv6). */}}
{{- define "dovetail.url" -}}
{{- $address := "127.0.0.1" }}
{{- if eq .Values.config.server.address "::" }}{{ $address = "[::1]" }}{{ end }}
{{- if eq .Values.mode "existing" }}
{{- $address = include "dovetail.clusterIP" . }}
{{- if contains ":" $address }}{{ $address = printf "[%s]" $address }}{{ end }}
{{- end }}
{{- printf "http://%s:%d" $address (int .Values.config.server.port) }}
{{- end }}

{{- /* ignorable: the cluster's own scheduler must be able to start our pods while we are away; the second scheduler
       rather waits for us than over-allocates what only we count. */}}
{{- define "dovetail.extenders" -}}
extenders:
  - urlPrefix: {{ include "dovetail.url" . }}
    filterVerb: filter
    prioritizeVerb: prioritize
    preemptVerb: preempt
    weight: {{ int .Values.kubeScheduler.extender.weight }}
    httpTimeout: {{ .Values.kubeScheduler.extender.httpTimeout }}
    nodeCacheCapable: true
    ignorable: {{ eq .Values.mode "existing" }}
{{- end }}

{{- define "dovetail.kubeSchedulerConfiguration" -}}
{{- $ours := eq .Values.mode "scheduler" }}
{{- with .Values.kubeScheduler }}
{{- if gt (int .podInitialBackoffSeconds) (int .podMaxBackoffSeconds) }}
{{- fail (printf "kubeScheduler.podInitialBackoffSeconds is %d and kubeScheduler.podMaxBackoffSeconds %d: kube-scheduler would not start. Accepted: the first at most the second." (int .podInitialBackoffSeconds) (int .podMaxBackoffSeconds)) }}
{{- end }}
{{- with .leaderElection }}
{{- $zero := toDate "2006" "2000" }}
{{- $lease := (mustDateModify .leaseDuration $zero).UnixMilli }}
{{- $renew := (mustDateModify .renewDeadline $zero).UnixMilli }}
{{- $retry := (mustDateModify .retryPeriod $zero).UnixMilli }}
{{- $start := $zero.UnixMilli }}
{{- if or (le $lease $renew) (le (mul 10 (sub $renew $start)) (mul 12 (sub $retry $start))) }}
{{- fail (printf "kubeScheduler.leaderElection has leaseDuration %s, renewDeadline %s and retryPeriod %s: kube-scheduler would not start. Accepted: renewDeadline below leaseDuration and above 1.2 times retryPeriod." .leaseDuration .renewDeadline .retryPeriod) }}
{{- end }}
{{- end }}
{{- end -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
{{- with .Values.kubeScheduler }}
parallelism: {{ int .parallelism }}
percentageOfNodesToScore: {{ int .percentageOfNodesToScore }}
podInitialBackoffSeconds: {{ int .podInitialBackoffSeconds }}
podMaxBackoffSeconds: {{ int .podMaxBackoffSeconds }}
clientConnection:
  {{- if not $ours }}
  kubeconfig: {{ $.Values.existing.kubeconfig | quote }}
  {{- end }}
  qps: {{ .clientConnection.qps }}
  burst: {{ int .clientConnection.burst }}
leaderElection:
  leaderElect: true
  {{- if $ours }}
  resourceName: {{ $.Values.scheduler.name | quote }}
  resourceNamespace: {{ $.Release.Namespace | quote }}
  {{- end }}
  leaseDuration: {{ .leaderElection.leaseDuration }}
  renewDeadline: {{ .leaderElection.renewDeadline }}
  retryPeriod: {{ .leaderElection.retryPeriod }}
profiles:
  - schedulerName: {{ include "dovetail.schedulerName" $ | quote }}
    {{- if or .disabledScorePlugins .scorePlugins }}
    plugins:
      score:
        {{- with .disabledScorePlugins }}
        disabled:
          {{- range . }}
          - name: {{ . }}
          {{- end }}
        {{- end }}
        {{- with .scorePlugins }}
        enabled:
          {{- toYaml . | nindent 10 }}
        {{- end }}
    {{- end }}
    {{- if not .spreadReplicas }}
    pluginConfig:
      - name: PodTopologySpread
        args:
          defaultingType: List
          defaultConstraints: []
    {{- end }}
{{- end }}
{{ include "dovetail.extenders" . }}
{{- end }}

{{- /* `config`, but for four keys that follow from the release; values of the user that cannot work are refused. */}}
{{- define "dovetail.config" -}}
{{- $config := deepCopy .Values.config }}
{{- if and (include "dovetail.opportunistic" .) (eq .Values.mode "existing") }}
{{- fail "config.opportunistic.enabled is true in mode existing: while Dovetail does not answer, kube-scheduler goes on without it (ignorable: true), and a pod whose requests are 0 would fit on any node. Set mode to scheduler, or config.opportunistic.enabled to false." }}
{{- end }}
{{- if and (include "dovetail.opportunistic" .) (not $config.usage.url) (not $config.usage.metricsApi) }}
{{- fail "config.opportunistic.enabled is true without usage, by which it goes: serve would not start. Set config.usage.url to a Prometheus, or config.usage.metricsApi to true." }}
{{- end }}
{{- if and (eq .Values.mode "scheduler") (eq (int $config.server.port) 10259) }}
{{- fail "config.server.port is 10259, on which kube-scheduler listens in the same pod: set it to another one, such as 10351." }}
{{- end }}
{{- range $key, $file := $config.usage.access }}
{{- if and (not $.Values.usageSecret) (hasSuffix "File" $key) (hasPrefix "/etc/dovetail-usage/" $file) }}
{{- fail (printf `config.usage.access.%s is %q, and usageSecret is empty: there would be no such file. Set usageSecret to a Secret that has it.` $key $file) }}
{{- end }}
{{- end }}
{{- $lease := $config.control.lease }}
{{- if not (has $lease.namespace (list "dovetail-system" .Release.Namespace)) }}
{{- fail (printf `config.control.lease.namespace is %q, and the release's namespace %q: leave it out. The Lease is in the release's namespace, where the rights to it are.` $lease.namespace .Release.Namespace) }}
{{- end }}
{{- if and (eq .Values.mode "scheduler") .Values.control.enabled (eq $lease.name .Values.scheduler.name) }}
{{- fail (printf `scheduler.name and config.control.lease.name are both %q: kube-scheduler and control would share one Lease, and one of them never lead. Set either to another name.` $lease.name) }}
{{- end }}
{{- $_ := set $lease "namespace" .Release.Namespace }}
{{- $_ := set $config "order" (include "dovetail.order" .) }}
{{- if eq .Values.mode "existing" }}
{{- $_ := set $config.placement "chosenBy" "kube-scheduler" }}
{{- end }}
{{- if eq (toJson $config.control.schedulers) `["dovetail"]` }}
{{- $_ := set $config.control "schedulers" (list (include "dovetail.schedulerName" .)) }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{- /* What the pods name that Dovetail places. */}}
{{- define "dovetail.schedulerName" -}}
{{- if eq .Values.mode "scheduler" }}{{ .Values.scheduler.name }}{{ else }}default-scheduler{{ end }}
{{- end }}

{{- /* Whether pods are evicted for queues below their share: "true" or nothing. */}}
{{- define "dovetail.reclaims" -}}
{{- with .Values.config.reclaim }}
{{- if or (gt (float64 .fairShareSeconds) 0.0) (gt (float64 .minimumShareSeconds) 0.0) }}true{{ end }}
{{- end }}
{{- end }}

{{- /* Whether pods are run on what others reserved and do not use: "true" or nothing. */}}
{{- define "dovetail.opportunistic" -}}
{{- with .Values.config.opportunistic }}
{{- if .enabled }}true{{ end }}
{{- end }}
{{- end }}

{{- /* Whether control runs in serve's container: "true" or nothing. */}}
{{- define "dovetail.withServe" -}}
{{- if and .Values.control.enabled .Values.control.withServe }}
{{- if eq .Values.mode "existing" }}
{{- fail "control.withServe is true in mode existing: there the cluster's own kube-scheduler calls serve, and control has pods of its own. Set control.withServe to false." }}
{{- end }}
{{- if .Values.networkPolicy.usage }}
{{- fail "control.withServe is true and networkPolicy.usage has entries: they are for control's own pods. Set control.withServe to false, or leave the entries out." }}
{{- end }}
{{- if eq (int .Values.config.server.port) 65535 }}
{{- fail "control.withServe is true and config.server.port is 65535: control's health and metrics are at the next port, and there is none. Accepted: a lower port." }}
{{- end }}
{{- if eq (int .Values.config.server.port) 10258 }}
{{- fail "control.withServe is true and config.server.port is 10258: control's health and metrics are at the next port, on which kube-scheduler listens in the same pod. Set it to another one, such as 10351." }}
{{- end }}
{{- "true" }}
{{- end }}
{{- end }}

{{- /* Whether control has pods of its own: "true" or nothing. */}}
{{- define "dovetail.ownControl" -}}
{{- if and .Values.control.enabled (not (include "dovetail.withServe" .)) }}true{{ end }}
{{- end }}

{{- /* Whether control evicts pods: "true" or nothing. */}}
{{- define "dovetail.evicts" -}}
{{- if include "dovetail.reclaims" . }}true
{{- else if and (include "dovetail.opportunistic" .) (not .Values.config.opportunistic.dryRun) }}true
{{- end }}
{{- end }}

{{- /* Whether labels of namespaces say who may use a queue: "true" or nothing. */}}
{{- define "dovetail.readsNamespaces" -}}
{{- $selectors := false }}
{{- range .Values.config.queues }}
{{- if kindIs "map" .namespaces }}{{ $selectors = true }}{{ end }}
{{- end }}
{{- if $selectors }}true{{ end }}
{{- end }}

{{- define "dovetail.hasMutatingAdmissionPolicies" -}}
{{- if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}true{{ end }}
{{- end }}

{{- /* Whether the policy that gates pods is installed ("true" or nothing), or why it cannot be. */}}
{{- define "dovetail.gates" -}}
{{- $wanted := toString .Values.gating.policy.enabled }}
{{- $there := include "dovetail.hasMutatingAdmissionPolicies" . }}
{{- if eq $wanted "auto" }}
{{- if and $there .Values.control.enabled (ne (include "dovetail.order" .) "filter") }}true{{ end }}
{{- else if eq $wanted "true" }}
{{- if not .Values.control.enabled }}
{{- fail "gating.policy.enabled is true and control.enabled is false: nothing would release the pods that the policy gates, and they would wait for ever. Set control.enabled to true, or gating.policy.enabled to false." }}
{{- end }}
{{- if not $there }}
{{- fail (printf "gating.policy.enabled is true, but this cluster (Kubernetes %s) has no MutatingAdmissionPolicy in admissionregistration.k8s.io/v1, which is there from Kubernetes 1.36. Set it to false, and let pod templates carry the gate themselves (docs/guide/install.md). `helm template` knows no cluster: tell it by --api-versions admissionregistration.k8s.io/v1/MutatingAdmissionPolicy." .Capabilities.KubeVersion.Version) }}
{{- end }}
{{- print "true" }}
{{- end }}
{{- end }}

{{- /* How the order is kept. In mode existing filter would order the pods of all namespaces, those of the cluster too: there
       only pods with the gate wait for their turn. */}}
{{- define "dovetail.order" -}}
{{- if and (eq .Values.mode "existing") (eq .Values.config.order "auto") }}gates{{ else }}{{ .Values.config.order }}{{ end }}
{{- end }}

{{- /* Whether pods are held only while somebody waits for room: "true" or nothing. In mode scheduler only. */}}
{{- define "dovetail.holdsInBacklog" -}}
{{- if and (include "dovetail.gates" .) (eq (include "dovetail.order" .) "auto") }}true{{ end }}
{{- end }}

{{- /* The Hold that says whether pods are held now: one for each Lease of a cluster. */}}
{{- define "dovetail.holdName" -}}
{{- printf "%s.%s" .Release.Namespace .Values.config.control.lease.name }}
{{- end }}

{{- /* By what a pod names its gang, as label or annotation (extender/cluster/pods/identity.py). */}}
{{- define "dovetail.gangLabels" -}}
- kueue.x-k8s.io/pod-group-name
- scheduling.x-k8s.io/pod-group
- scheduling.k8s.io/group-name
- scheduling.volcano.sh/group-name
- volcano.sh/job-name
- gang.scheduling.koordinator.sh/name
{{- end }}

{{- /* Which pods a policy of ours is for; more conditions may follow. */}}
{{- define "dovetail.gatedPods" -}}
# A pod that it cannot read is created as it is, without a gate, and placed without waiting for its turn. Fail would
# keep pods from being created at all, which is never worth an order.
failurePolicy: Ignore
# Once is enough: what a later webhook writes (gates of others, say) stands beside ours.
reinvocationPolicy: Never
matchConstraints:
  resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE]
      resources: [pods]
matchConditions:
  - name: no-node-yet # a gated pod must not have one, and who writes it has placed the pod
    expression: object.spec.?nodeName.orValue('') == ''
  - name: no-mirror-pod # the kubelet runs it already
    expression: "!object.metadata.?annotations[?'kubernetes.io/config.mirror'].hasValue()"
  - name: no-daemon # each is meant for one node, and none waits for another
    expression: "!object.metadata.?ownerReferences.orValue([]).exists(owner, owner.kind == 'DaemonSet')"
  - name: no-part-of-the-cluster # what all others need
    expression: "!(object.spec.?priorityClassName.orValue('') in ['system-node-critical', 'system-cluster-critical'])"
  - name: not-ourselves # who would release them?
    expression: object.metadata.?labels[?'app.kubernetes.io/name'].orValue('') != 'dovetail'
  - name: our-scheduler # or the default, which is written where a pod names none; others know nothing of our turns
    expression: object.spec.schedulerName in [{{ uniq (list "default-scheduler" (include "dovetail.schedulerName" .)) | toJson | trimAll "[]" | replace "\"" "'" | replace "," ", " }}]
  - name: not-opted-out
    expression: object.metadata.?labels[?'dovetail.dev/managed'].orValue('') != 'false'
  - name: no-gate-yet # its author has chosen
    expression: "!object.spec.?schedulingGates.orValue([]).exists(gate, gate.name == 'dovetail.dev/hold')"
{{- end }}

{{- /* Pods that start together or not at all, and pods that only wait for what others do not use: these wait for their
       turn at any time. The labels and annotations are those by which Dovetail knows a gang. */}}
{{- define "dovetail.alwaysHeld" -}}
object.spec.?schedulingGroup.hasValue() ||
object.metadata.?annotations[?'dovetail.dev/opportunistic'].orValue('') == 'only' ||
[
  {{- range $label := include "dovetail.gangLabels" . | fromYamlArray }}
  {{ squote $label }},
  {{- end }}
].exists(name,
  object.metadata.?labels[?name].orValue('') != '' || object.metadata.?annotations[?name].orValue('') != '')
{{- end }}

{{- /* What is written into a pod that waits for its turn. */}}
{{- define "dovetail.heldPod" -}}
Object{
  spec: Object.spec{
    {{- if eq .Values.mode "scheduler" }}
    schedulerName: {{ squote (include "dovetail.schedulerName" .) }},
    {{- end }}
    schedulingGates: [Object.spec.schedulingGates{name: 'dovetail.dev/hold'}]
  }
}
{{- end }}

{{- define "dovetail.account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "dovetail.labels" .root | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false # its pods ask for it
{{- end }}

{{- /* What all our pods' specs share, but for their containers; the account as "account". */}}
{{- define "dovetail.podSpec" -}}
# The cluster's own scheduler places these pods, in both modes: Dovetail need not run for Dovetail to start.
schedulerName: default-scheduler
serviceAccountName: {{ .account }}
automountServiceAccountToken: true
enableServiceLinks: false
# Five seconds until nobody sends new calls, then the requests that have begun, then the processes' own end.
terminationGracePeriodSeconds: {{ add 25 (ceil .root.Values.config.server.drainSeconds) }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "dovetail.volumes" -}}
- name: settings
  configMap:
    name: {{ include "dovetail.name" . }}
- name: tmp # the root file system is read-only
  emptyDir:
    sizeLimit: 64Mi
{{- end }}

{{- define "dovetail.usageVolume" -}}
{{- with .Values.usageSecret }}
- name: usage
  secret:
    secretName: {{ . | quote }}
{{- end }}
{{- end }}

{{- /* Where the pods may go: apart from each other ("component", "replicas"), and as the values say. */}}
{{- define "dovetail.where" -}}
{{- if gt (int .replicas) 1 }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "dovetail.selector" $.root | nindent 8 }}
        app.kubernetes.io/component: {{ $.component }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- with .root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "dovetail.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* One that serves: given the name of the container and of its port, and the command, as "root", "name", "command". */}}
{{- define "dovetail.container" -}}
{{ include "dovetail.run" . }}
ports:
  - name: {{ .name }}
    containerPort: {{ .root.Values.config.server.port }}
  {{- if and (eq .command "serve") (include "dovetail.withServe" .root) }}
  - name: control
    containerPort: {{ add1 .root.Values.config.server.port }}
  {{- end }}
startupProbe: # until the caches are full
  httpGet: {path: /readyz, port: {{ .name }}}
  periodSeconds: 2
  failureThreshold: 90
readinessProbe:
  httpGet: {path: /readyz, port: {{ .name }}}
  periodSeconds: 5
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /livez, port: {{ .name }}}
  periodSeconds: 10
  timeoutSeconds: 5
{{- end }}

{{- define "dovetail.run" -}}
name: {{ .name }}
image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args: [{{ .command }}, {{ if and (eq .command "serve") (include "dovetail.withServe" .root) }}--with-control, {{ end }}--config, /etc/dovetail/dovetail.yaml]
{{- with .root.Values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "dovetail.containerSecurityContext" . | nindent 2 }}
volumeMounts:
  - name: settings
    mountPath: /etc/dovetail
    readOnly: true
  - name: tmp
    mountPath: /tmp
  {{- if and .root.Values.usageSecret (or (eq .command "control") (and (eq .command "serve") (include "dovetail.withServe" .root))) }}
  - name: usage # the whole folder: a single file would not follow the Secret
    mountPath: /etc/dovetail-usage
    readOnly: true
  {{- end }}
{{- end }}
