{{- define "dovetail.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "dovetail.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "dovetail.labels" -}}
{{ include "dovetail.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
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
{{- fail (printf `existing.clusterIP is %q; accepted in mode existing: a free IP address of the cluster's service range, such as 10.96.0.250, and no name, because kube-scheduler cannot resolve names of the cluster. docs/install.md says how to choose one.` $address) }}
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
{{- $ours := eq .Values.mode "scheduler" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
{{- with .Values.kubeScheduler }}
parallelism: {{ int .parallelism }}
percentageOfNodesToScore: {{ int .percentageOfNodesToScore }}
podInitialBackoffSeconds: {{ int .podInitialBackoffSeconds }}
podMaxBackoffSeconds: {{ int .podMaxBackoffSeconds }}
clientConnection:
  {{- if not $ours }}
  kubeconfig: {{ $.Values.existing.kubeconfig }}
  {{- end }}
  qps: {{ .clientConnection.qps }}
  burst: {{ int .clientConnection.burst }}
leaderElection:
  leaderElect: true
  {{- if $ours }}
  resourceName: {{ $.Values.scheduler.name }}
  resourceNamespace: {{ $.Release.Namespace }}
  {{- end }}
  leaseDuration: {{ .leaderElection.leaseDuration }}
  renewDeadline: {{ .leaderElection.renewDeadline }}
  retryPeriod: {{ .leaderElection.retryPeriod }}
profiles:
  - schedulerName: {{ if $ours }}{{ $.Values.scheduler.name }}{{ else }}default-scheduler{{ end }}
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

{{- define "dovetail.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "dovetail.container" -}}
name: extender
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [serve, --config, /etc/dovetail/dovetail.yaml]
ports:
  - name: extender
    containerPort: {{ .Values.config.server.port }}
startupProbe: # until the caches are full
  httpGet: {path: /readyz, port: extender}
  periodSeconds: 2
  failureThreshold: 90
readinessProbe:
  httpGet: {path: /readyz, port: extender}
  periodSeconds: 5
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /livez, port: extender}
  periodSeconds: 10
  timeoutSeconds: 5
{{- with .Values.resources }}
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
{{- end }}
