{{- define "barnabas.labels" -}}
app.kubernetes.io/name: barnabas-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "barnabas.selector" -}}
app.kubernetes.io/name: barnabas-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The image of a component: (list $ "broker"). */ -}}
{{- define "barnabas.image" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.registry }}{{ . }}/{{ end }}barnabas-{{ index . 1 }}:{{ $root.Values.tag | default $root.Chart.AppVersion }}
{{- with index $root.Values.digests (index . 1) }}@{{ . }}{{ end }}
{{- end }}

{{- /* What the operator may do where it watches. */ -}}
{{- define "barnabas.rules" -}}
- apiGroups: [barnabas.io]
  resources: [kafkaclusters, kafkatopics, kafkausers, kafkapipelines]
  verbs: [get, list, watch]
- apiGroups: [barnabas.io]
  resources: [kafkaclusters/status, kafkatopics/status, kafkausers/status, kafkapipelines/status]
  verbs: [patch]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [services, configmaps]
  verbs: [get, list, watch, create, patch, delete]
{{- if .Values.users }}
# Secrets of secured clusters and of KafkaUsers, by name: neither listed nor watched. A right on names
# that begin in some way does not exist, so it is one on every Secret of a watched namespace.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, patch]
{{- end }}
# Of secured clusters.
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, create, patch, delete]
# Listeners of the types ingress and tlsroute.
- apiGroups: [networking.k8s.io]
  resources: [ingresses]
  verbs: [get, list, create, patch, delete]
- apiGroups: [gateway.networking.k8s.io]
  resources: [tlsroutes]
  verbs: [get, list, create, patch, delete]
# Certificates of listeners with an issuerRef.
- apiGroups: [cert-manager.io]
  resources: [certificates]
  verbs: [get, list, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch]
# Rolling restarts evict pods, one at a time; with spec.roll.maxUnavailablePerRack the others of a rack
# are deleted once one of them is evicted. A pod is told its rack; growing storage patches claims.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, patch]
# Nothing in Kafka is deleted with the resources of a namespace that is being deleted.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
# Leader election: one Lease in each namespace, one more of those that watch all (in namespace default),
# and the right to create them, which cannot be bound to a name.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [barnabas-operator{{ if .Values.watchAllNamespaces }}, barnabas-operator-all-namespaces{{ end }}]
  verbs: [get, update]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
