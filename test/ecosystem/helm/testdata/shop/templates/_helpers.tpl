{{- define "shop.prepare" -}}
restartPolicy: Never
terminationGracePeriodSeconds: 0
containers:
- {name: prepare, image: {{ .Values.image }}, args: {{ toJson .Values.hookCommand }}}
{{- end }}
