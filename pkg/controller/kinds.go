package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Pods gives access to pods.
func Pods(c *Client) *Resource[*corev1.Pod] {
	return newResource(c, corev1.SchemeGroupVersion, "pods", &corev1.Pod{}, &corev1.PodList{})
}

// Nodes gives access to nodes.
func Nodes(c *Client) *Resource[*corev1.Node] {
	return newResource(c, corev1.SchemeGroupVersion, "nodes", &corev1.Node{}, &corev1.NodeList{})
}

// Namespaces gives access to namespaces.
func Namespaces(c *Client) *Resource[*corev1.Namespace] {
	return newResource(c, corev1.SchemeGroupVersion, "namespaces", &corev1.Namespace{}, &corev1.NamespaceList{})
}

// Services gives access to services.
func Services(c *Client) *Resource[*corev1.Service] {
	return newResource(c, corev1.SchemeGroupVersion, "services", &corev1.Service{}, &corev1.ServiceList{})
}

// Endpoints gives access to endpoints.
func Endpoints(c *Client) *Resource[*corev1.Endpoints] {
	return newResource(c, corev1.SchemeGroupVersion, "endpoints", &corev1.Endpoints{}, &corev1.EndpointsList{})
}

// Events gives access to core/v1 events.
func Events(c *Client) *Resource[*corev1.Event] {
	return newResource(c, corev1.SchemeGroupVersion, "events", &corev1.Event{}, &corev1.EventList{})
}

// ConfigMaps gives access to configmaps.
func ConfigMaps(c *Client) *Resource[*corev1.ConfigMap] {
	return newResource(c, corev1.SchemeGroupVersion, "configmaps", &corev1.ConfigMap{}, &corev1.ConfigMapList{})
}

// Secrets gives access to secrets.
func Secrets(c *Client) *Resource[*corev1.Secret] {
	return newResource(c, corev1.SchemeGroupVersion, "secrets", &corev1.Secret{}, &corev1.SecretList{})
}

// ServiceAccounts gives access to serviceaccounts.
func ServiceAccounts(c *Client) *Resource[*corev1.ServiceAccount] {
	return newResource(c, corev1.SchemeGroupVersion, "serviceaccounts", &corev1.ServiceAccount{}, &corev1.ServiceAccountList{})
}

// PersistentVolumeClaims gives access to persistentvolumeclaims.
func PersistentVolumeClaims(c *Client) *Resource[*corev1.PersistentVolumeClaim] {
	return newResource(c, corev1.SchemeGroupVersion, "persistentvolumeclaims", &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{})
}

// ReplicationControllers gives access to replicationcontrollers.
func ReplicationControllers(c *Client) *Resource[*corev1.ReplicationController] {
	return newResource(c, corev1.SchemeGroupVersion, "replicationcontrollers", &corev1.ReplicationController{}, &corev1.ReplicationControllerList{})
}

// ResourceQuotas gives access to resourcequotas.
func ResourceQuotas(c *Client) *Resource[*corev1.ResourceQuota] {
	return newResource(c, corev1.SchemeGroupVersion, "resourcequotas", &corev1.ResourceQuota{}, &corev1.ResourceQuotaList{})
}

// ReplicaSets gives access to replicasets.
func ReplicaSets(c *Client) *Resource[*appsv1.ReplicaSet] {
	return newResource(c, appsv1.SchemeGroupVersion, "replicasets", &appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{})
}

// Deployments gives access to deployments.
func Deployments(c *Client) *Resource[*appsv1.Deployment] {
	return newResource(c, appsv1.SchemeGroupVersion, "deployments", &appsv1.Deployment{}, &appsv1.DeploymentList{})
}

// DaemonSets gives access to daemonsets.
func DaemonSets(c *Client) *Resource[*appsv1.DaemonSet] {
	return newResource(c, appsv1.SchemeGroupVersion, "daemonsets", &appsv1.DaemonSet{}, &appsv1.DaemonSetList{})
}

// StatefulSets gives access to statefulsets.
func StatefulSets(c *Client) *Resource[*appsv1.StatefulSet] {
	return newResource(c, appsv1.SchemeGroupVersion, "statefulsets", &appsv1.StatefulSet{}, &appsv1.StatefulSetList{})
}

// ControllerRevisions gives access to controllerrevisions.
func ControllerRevisions(c *Client) *Resource[*appsv1.ControllerRevision] {
	return newResource(c, appsv1.SchemeGroupVersion, "controllerrevisions", &appsv1.ControllerRevision{}, &appsv1.ControllerRevisionList{})
}

// EndpointSlices gives access to endpointslices.
func EndpointSlices(c *Client) *Resource[*discoveryv1.EndpointSlice] {
	return newResource(c, discoveryv1.SchemeGroupVersion, "endpointslices", &discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{})
}

// Leases gives access to leases.
func Leases(c *Client) *Resource[*coordinationv1.Lease] {
	return newResource(c, coordinationv1.SchemeGroupVersion, "leases", &coordinationv1.Lease{}, &coordinationv1.LeaseList{})
}

// ClusterRoles gives access to clusterroles.
func ClusterRoles(c *Client) *Resource[*rbacv1.ClusterRole] {
	return newResource(c, rbacv1.SchemeGroupVersion, "clusterroles", &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleList{})
}
