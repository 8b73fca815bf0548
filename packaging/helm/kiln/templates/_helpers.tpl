{{- define "kiln.labels" -}}
app.kubernetes.io/name: kiln
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "kiln.about" -}}
{{ include "kiln.labels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{/* The host of an endpoint as openstack-helm writes it: an override, or a service in the namespace. */}}
{{- define "kiln.host" -}}
{{- $override := get (.endpoint.host_fqdn_override | default dict) "default" -}}
{{- $host := (get .endpoint.hosts "internal") | default (get .endpoint.hosts "default") -}}
{{- if $override -}}
{{ $override }}
{{- else -}}
{{ printf "%s.%s.svc.%s" $host (.endpoint.namespace | default .root.Release.Namespace) .root.Values.endpoints.cluster_domain_suffix }}
{{- end -}}
{{- end }}

{{/* A part of an endpoint, which is a text or has a default. */}}
{{- define "kiln.part" -}}
{{- if kindIs "map" .part -}}{{ .part.default | default .usual }}{{- else -}}{{ .part | default .usual }}{{- end -}}
{{- end }}

{{/* A port: its place differs between endpoints. */}}
{{- define "kiln.port" -}}
{{- range $name, $port := . -}}{{ $port.internal | default $port.default | int }} {{ end -}}
{{- end }}

{{/* What follows from the values, as sections and options. `conf.heat` decides where both name an option. */}}
{{- define "kiln.sections" -}}
{{- $root := . -}}
{{- $own := dict
    "DEFAULT" (dict "use_stderr" true)
    "heat_api" (dict "bind_host" "0.0.0.0" "bind_port" .Values.network.api.port)
    "heat_api_cfn" (dict "bind_host" "0.0.0.0" "bind_port" .Values.network.cfn.port)
    "oslo_middleware" (dict "enable_proxy_headers_parsing" true)
    "kiln" (dict "metrics_bind_host" "0.0.0.0" "metrics_bind_port" .Values.network.metrics.port "cfn_api" .Values.network.cfn.enabled
        "migrate" (ternary "manual" "auto" .Values.migrate.enabled)) -}}
{{- with .Values.endpoints.oslo_db -}}
{{- $user := .auth.heat -}}
{{- $scheme := include "kiln.part" (dict "part" .scheme "usual" "mysql+pymysql") -}}
{{- $path := include "kiln.part" (dict "part" .path "usual" "/heat") -}}
{{- $port := index (splitList " " (include "kiln.port" .port)) 0 -}}
{{- $host := include "kiln.host" (dict "endpoint" . "root" $root) -}}
{{- $url := printf "%s://%s:%s@%s:%s%s" $scheme (urlquery $user.username | replace "+" "%20") (urlquery $user.password | replace "+" "%20") $host $port $path -}}
{{- $_ := set $own "database" (dict "connection" $url) -}}
{{- end -}}
{{- with .Values.endpoints.oslo_messaging -}}
{{- $user := .auth.heat -}}
{{- $host := include "kiln.host" (dict "endpoint" . "root" $root) -}}
{{- $port := (get .port "amqp").default | default 5672 | int -}}
{{- $path := include "kiln.part" (dict "part" .path "usual" "/heat") -}}
{{- $url := printf "rabbit://%s:%s@%s:%d%s" (urlquery $user.username | replace "+" "%20") (urlquery $user.password | replace "+" "%20") $host $port $path -}}
{{- $_ := set (get $own "DEFAULT") "transport_url" $url -}}
{{- end -}}
{{- with .Values.endpoints.identity -}}
{{- $host := include "kiln.host" (dict "endpoint" . "root" $root) -}}
{{- $scheme := include "kiln.part" (dict "part" .scheme "usual" "http") -}}
{{- $path := include "kiln.part" (dict "part" .path "usual" "/v3") -}}
{{- $port := (get .port "api").internal | default (get .port "api").default | int -}}
{{- $url := printf "%s://%s:%d%s" $scheme $host $port $path -}}
{{- range $section, $name := dict "keystone_authtoken" "heat" "trustee" "heat_trustee" -}}
{{- with get $root.Values.endpoints.identity.auth $name -}}
{{- $account := dict "auth_type" "password" "auth_url" $url "username" .username "password" .password
    "user_domain_name" (.user_domain_name | default "default") -}}
{{- if eq $section "keystone_authtoken" -}}
{{- $_ := set $account "project_name" (.project_name | default "service") -}}
{{- $_ := set $account "project_domain_name" (.project_domain_name | default "default") -}}
{{- $_ := set $account "region_name" (.region_name | default "RegionOne") -}}
{{- $_ := set $account "www_authenticate_uri" $url -}}
{{- end -}}
{{- $_ := set $own $section $account -}}
{{- end -}}
{{- end -}}
{{- with .auth.heat_stack_user -}}
{{- $main := get $own "DEFAULT" -}}
{{- $_ := set $main "stack_user_domain_name" .domain_name -}}
{{- $_ := set $main "stack_domain_admin" .username -}}
{{- $_ := set $main "stack_domain_admin_password" .password -}}
{{- end -}}
{{- end -}}
{{- mergeOverwrite $own (deepCopy .Values.conf.heat) | toYaml -}}
{{- end }}

{{- define "kiln.ini" -}}
{{- range $section, $options := include "kiln.sections" . | fromYaml }}
[{{ $section }}]
{{- range $name, $value := $options }}
{{- if kindIs "slice" $value }}
{{ $name }} = {{ join "," $value }}
{{- else if and (kindIs "float64" $value) (eq (floor $value) $value) }}
{{ $name }} = {{ int64 $value }}
{{- else if not (kindIs "invalid" $value) }}
{{ $name }} = {{ $value }}
{{- end }}
{{- end }}
{{ end }}
{{- end }}

{{- define "kiln.secret" -}}
{{ .Values.existing_config | default (printf "%s-config" .Release.Name) }}
{{- end }}

{{/* What all pods have. */}}
{{- define "kiln.pod" -}}
serviceAccountName: {{ .root.Release.Name }}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 42418
  runAsGroup: 42418
  fsGroup: 42418
  seccompProfile:
    type: RuntimeDefault
{{- with .root.Values.images.pull_secrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- with .root.Values.pod.node_selector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.pod.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "kiln.container" -}}
image: {{ .root.Values.images.kiln }}
imagePullPolicy: {{ .root.Values.images.pull_policy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
resources:
  {{- toYaml (get .root.Values.pod.resources .component) | nindent 2 }}
{{- with .root.Values.environment_from }}
envFrom:
{{- range . }}
  - secretRef:
      name: {{ . }}
{{- end }}
{{- end }}
volumeMounts:
  - name: config
    mountPath: /etc/kiln/kiln.conf
    subPath: kiln.conf
    readOnly: true
  - name: state
    mountPath: /var/lib/kiln
  - name: tmp
    mountPath: /tmp
{{- range $folder, $_ := .root.Values.mounts.secrets }}
  - name: secret-{{ $folder }}
    mountPath: /etc/kiln/{{ $folder }}
    readOnly: true
{{- end }}
{{- range $folder, $_ := .root.Values.mounts.config_maps }}
  - name: map-{{ $folder }}
    mountPath: /etc/kiln/{{ $folder }}
    readOnly: true
{{- end }}
{{- end }}

{{- define "kiln.volumes" -}}
- name: config
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
- name: state
{{- if and .root.Values.spool.host_path (ne .component "migrate") }}
  hostPath:
    path: {{ .root.Values.spool.host_path }}
    type: DirectoryOrCreate
{{- else }}
  emptyDir: {}
{{- end }}
- name: tmp
  emptyDir: {}
{{- range $folder, $name := .root.Values.mounts.secrets }}
- name: secret-{{ $folder }}
  secret:
    secretName: {{ $name }}
    defaultMode: 0440
{{- end }}
{{- range $folder, $name := .root.Values.mounts.config_maps }}
- name: map-{{ $folder }}
  configMap:
    name: {{ $name }}
{{- end }}
{{- end }}
