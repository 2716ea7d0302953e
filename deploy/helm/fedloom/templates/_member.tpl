{{/* Parts that the pods of server, helpers and clients share. Each takes a dict of: root, name, member. */}}

{{- define "fedloom.labels" -}}
app.kubernetes.io/name: fedloom
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "fedloom.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "fedloom.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: 60  # a reply that has cost privacy budget is sent
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "fedloom.container" -}}
image: {{ include "fedloom.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "fedloom.claim" -}}
- metadata: {name: state}
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .className }}
    storageClassName: {{ . | quote }}
    {{- end }}
    resources: {requests: {storage: {{ .size | quote }}}}
{{- end }}
