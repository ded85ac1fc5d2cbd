{{- define "consumer.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "consumer.fullname" -}}
{{- $name := include "consumer.name" . }}
{{- $combined := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- default $combined .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "consumer.selectorLabels" -}}
app.kubernetes.io/name: {{ include "consumer.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: daemon
{{- end }}

{{- define "consumer.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{ include "consumer.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "consumer.metadata" -}}
name: {{ include "consumer.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "consumer.labels" . | nindent 2 }}
{{- end }}

{{- define "consumer.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{/* "true" where the URLs are given in values, so that the release has a Secret of its own. */}}
{{- define "consumer.ownSecret" -}}
{{- if .Values.broker.url }}true{{ end }}
{{- end }}

{{- define "consumer.secretName" -}}
{{- if include "consumer.ownSecret" . }}{{ include "consumer.fullname" . }}{{ else }}{{ .Values.existingSecret }}{{ end }}
{{- end }}

{{/* "true" where the store is one SQLite file, which only one pod may open. */}}
{{- define "consumer.sqlite" -}}
{{- if or .Values.store.sqlite (hasPrefix "sqlite:" .Values.store.url) }}true{{ end }}
{{- end }}

{{/* The least time that Kubernetes has to grant: the drain, and ten seconds to commit, ack and close. */}}
{{- define "consumer.leastGrace" -}}
{{- add .Values.drainSeconds 10 }}
{{- end }}

{{/* What all children may use together, in bytes, as the daemon reckons: the pod's limit less 128Mi for the parent. */}}
{{- define "consumer.memoryOfChildren" -}}
{{- $limit := .Values.resources.limits.memory }}
{{- $mebibytes := regexFind "^[0-9]+" $limit | int64 | mul (hasSuffix "Gi" $limit | ternary 1024 1) }}
{{- mul (sub $mebibytes 128) 1048576 }}
{{- end }}

{{/* As far as the values say: whether the job modules have async handlers, for which there is one io child, they don't. */}}
{{- define "consumer.children" -}}
{{- add .Values.config.pool.processes (dig "io_processes" 0 .Values.config.pool) }}
{{- end }}

{{- define "consumer.tomlKey" -}}
{{- if regexMatch "^[A-Za-z0-9_-]+$" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{/* A map as TOML, its scalars before its tables. JSON writes scalars and lists as TOML does, and whole numbers
     without the fraction that toToml gives them. */}}
{{- define "consumer.toml" -}}
{{- $path := .path }}
{{- range $key, $value := .table }}
{{- if not (kindIs "map" $value) }}
{{ include "consumer.tomlKey" $key }} = {{ toJson $value }}
{{- end }}
{{- end }}
{{- range $key, $value := .table }}
{{- if kindIs "map" $value }}
{{ $name := append $path (include "consumer.tomlKey" $key) }}
[{{ join "." $name }}]
{{- include "consumer.toml" (dict "path" $name "table" $value) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "consumer.settings" -}}
{{- include "consumer.toml" (dict "path" list "table" .Values.config) | trim }}
{{- end }}

{{/* Prometheus rule text is full of braces of its own, so thresholds stand in it as ${name}. */}}
{{- define "consumer.rules" -}}
{{- $text := .Files.Get "rules/alerts.yaml" }}
{{- $selector := printf "namespace=%q,job=%q" .Release.Namespace (include "consumer.name" .) }}
{{- $words := merge (dict "selector" $selector "runbooks" (trimSuffix "/" .Values.rules.runbooks)) .Values.rules.thresholds }}
{{- range $name, $value := $words }}
{{- $text = replace (printf "${%s}" $name) (toString $value) $text }}
{{- end }}
{{- $text }}
{{- end }}
