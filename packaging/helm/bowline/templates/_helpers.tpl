{{- define "bowline.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "bowline.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "bowline.labels" -}}
{{ include "bowline.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "bowline.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "bowline.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "bowline.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- /* Refuses values that would lose data or not start. */ -}}
{{- define "bowline.validate" -}}
{{- $postgres := or (index .Values.config "database-url") .Values.databaseUrlSecret -}}
{{- $bucket := index .Values.config "blob-url" -}}
{{- if gt (int .Values.replicaCount) 1 -}}
{{- if not $postgres }}{{ fail "replicaCount above 1 needs PostgreSQL: set databaseUrlSecret or config.database-url. The embedded database has one server." }}{{ end -}}
{{- if not $bucket }}{{ fail "replicaCount above 1 needs a bucket: set config.blob-url. A volume of one pod holds blobs that the others lack." }}{{ end -}}
{{- end -}}
{{- if and $postgres (not .Values.keySecret) }}{{ fail "PostgreSQL needs keySecret: every server must have the same key file." }}{{ end -}}
{{- if and (not (and $postgres $bucket)) (not .Values.persistence.enabled) }}{{ fail "persistence.enabled must be true: without PostgreSQL and a bucket, the data is in the volume." }}{{ end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}{{ fail "ingress.enabled needs ingress.host." }}{{ end -}}
{{- end }}
