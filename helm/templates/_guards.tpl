{{/* What a schema can't say: rules that hold between values. Each ends the render with one sentence. */}}
{{- define "consumer.guards" -}}
{{- $least := include "consumer.leastGrace" . | int }}
{{- $grace := .Values.terminationGracePeriodSeconds | int }}
{{- if and $grace (lt $grace $least) }}
{{- fail (printf "terminationGracePeriodSeconds is %d, but drainSeconds is %d: running jobs would be killed in mid-drain. Set it to %d or more, or to 0 for exactly that." $grace (int .Values.drainSeconds) $least) }}
{{- end }}
{{- if ne (empty .Values.broker.url) (empty .Values.store.url) }}
{{- fail "Only one of broker.url and store.url is given. Give both, or give neither and name a Secret in existingSecret." }}
{{- end }}
{{- if and .Values.broker.url (not (regexMatch "^amqps?://." .Values.broker.url)) }}
{{- fail "broker.url begins with neither amqp:// nor amqps://. Write it as amqps://USER:PASSWORD@HOST/VHOST." }}
{{- end }}
{{- if and .Values.store.url (not (regexMatch "^(postgres(ql)?://|sqlite:///)." .Values.store.url)) }}
{{- fail "store.url begins with neither postgresql:// nor sqlite:///. Write it as postgresql://USER:PASSWORD@HOST/DATABASE, or as sqlite:///PATH." }}
{{- end }}
{{- if and (not .Values.broker.url) (not .Values.existingSecret) }}
{{- fail "The broker and the store are unknown: name a Secret with the keys broker-url and store-url in existingSecret, or, for a trial, give broker.url and store.url." }}
{{- end }}
{{- if and (include "consumer.sqlite" .) (gt (int .Values.replicas) 1) }}
{{- fail (printf "replicas is %d, but the store is SQLite, a file that only one pod may open. Set replicas to 1, or use PostgreSQL." (int .Values.replicas)) }}
{{- end }}
{{- if or (dig "broker" "url" "" .Values.config) (dig "store" "url" "" .Values.config) }}
{{- fail "config holds broker.url or store.url, and config becomes a ConfigMap, where a password can be read by anyone. Use existingSecret, or, for a trial, the values broker.url and store.url." }}
{{- end }}
{{- if dig "broker" "password" "" .Values.config }}
{{- fail "config holds broker.password, and config becomes a ConfigMap, where it can be read by anyone. Put it into the URL in existingSecret, or mount a Secret (extraVolumes, extraVolumeMounts) and name its file in config.broker.password_file." }}
{{- end }}
{{- if hasKey .Values.config "shutdown" }}
{{- fail "config.shutdown is set by the chart, because the grace period depends on it. Use drainSeconds." }}
{{- end }}
{{- if ne .Values.resources.limits.memory .Values.resources.requests.memory }}
{{- fail (printf "resources.requests.memory is %s and resources.limits.memory is %s: a pod that uses more than it asked for is the first to be evicted. Make them equal." .Values.resources.requests.memory .Values.resources.limits.memory) }}
{{- end }}
{{- $room := include "consumer.memoryOfChildren" . | int64 }}
{{- $children := include "consumer.children" . | int64 }}
{{- $limit := dig "memory_limit" 0 .Values.config.pool | int64 }}
{{- if and (not $limit) (lt (div $room $children) 134217728) }}
{{- fail (printf "resources.limits.memory is %s: after 128Mi for the parent, less than 128Mi is left for each of %d child processes. Raise it, or lower config.pool.processes." .Values.resources.limits.memory $children) }}
{{- end }}
{{- if gt $limit $room }}
{{- fail (printf "config.pool.memory_limit is %d bytes, but resources.limits.memory is %s, of which 128Mi are the parent's: the pod would be killed before a child meets its limit. Raise the one or lower the other." $limit .Values.resources.limits.memory) }}
{{- end }}
{{- $ackTimeout := dig "broker" "ack_timeout_seconds" 0 .Values.config | int64 }}
{{- if and .Values.rules.enabled $ackTimeout (ge (.Values.rules.thresholds.stuckJobSeconds | int64) $ackTimeout) }}
{{- fail (printf "rules.thresholds.stuckJobSeconds is %d, but config.broker.ack_timeout_seconds is %d: the alert would come after the broker took the message back. Set it lower." (int64 .Values.rules.thresholds.stuckJobSeconds) $ackTimeout) }}
{{- end }}
{{- end }}
