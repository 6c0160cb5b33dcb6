// Package core gives access to the kinds of the core group that components use.
package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/apiclient"
)

// Pods gives access to pods.
func Pods(c *apiclient.Client) *apiclient.Resource[*corev1.Pod] {
	return apiclient.NewResource(c, corev1.SchemeGroupVersion, "pods", &corev1.Pod{})
}

// Nodes gives access to nodes.
func Nodes(c *apiclient.Client) *apiclient.Resource[*corev1.Node] {
	return apiclient.NewResource(c, corev1.SchemeGroupVersion, "nodes", &corev1.Node{})
}

// Namespaces gives access to namespaces.
func Namespaces(c *apiclient.Client) *apiclient.Resource[*corev1.Namespace] {
	return apiclient.NewResource(c, corev1.SchemeGroupVersion, "namespaces", &corev1.Namespace{})
}

// Services gives access to services.
func Services(c *apiclient.Client) *apiclient.Resource[*corev1.Service] {
	return apiclient.NewResource(c, corev1.SchemeGroupVersion, "services", &corev1.Service{})
}

// Endpoints gives access to endpoints.
func Endpoints(c *apiclient.Client) *apiclient.Resource[*corev1.Endpoints] {
	return apiclient.NewResource(c, corev1.SchemeGroupVersion, "endpoints", &corev1.Endpoints{})
}

// Events gives access to events.
func Events(c *apiclient.Client) *apiclient.Resource[*corev1.Event] {
	return apiclient.NewResource(c, corev1.SchemeGroupVersion, "events", &corev1.Event{})
}

// ConfigMaps gives access to configmaps.
func ConfigMaps(c *apiclient.Client) *apiclient.Resource[*corev1.ConfigMap] {
	return apiclient.NewResource(c, corev1.SchemeGroupVersion, "configmaps", &corev1.ConfigMap{})
}

// Secrets gives access to secrets.
func Secrets(c *apiclient.Client) *apiclient.Resource[*corev1.Secret] {
	return apiclient.NewResource(c, corev1.SchemeGroupVersion, "secrets", &corev1.Secret{})
}

// ServiceAccounts gives access to serviceaccounts.
func ServiceAccounts(c *apiclient.Client) *apiclient.Resource[*corev1.ServiceAccount] {
	return apiclient.NewResource(c, corev1.SchemeGroupVersion, "serviceaccounts", &corev1.ServiceAccount{})
}

// PersistentVolumes gives access to persistentvolumes.
func PersistentVolumes(c *apiclient.Client) *apiclient.Resource[*corev1.PersistentVolume] {
	return apiclient.NewResource(c, corev1.SchemeGroupVersion, "persistentvolumes", &corev1.PersistentVolume{})
}

// PersistentVolumeClaims gives access to persistentvolumeclaims.
func PersistentVolumeClaims(c *apiclient.Client) *apiclient.Resource[*corev1.PersistentVolumeClaim] {
	return apiclient.NewResource(c, corev1.SchemeGroupVersion, "persistentvolumeclaims",
		&corev1.PersistentVolumeClaim{})
}

// ReplicationControllers gives access to replicationcontrollers.
func ReplicationControllers(c *apiclient.Client) *apiclient.Resource[*corev1.ReplicationController] {
	return apiclient.NewResource(c, corev1.SchemeGroupVersion, "replicationcontrollers",
		&corev1.ReplicationController{})
}

// ResourceQuotas gives access to resourcequotas.
func ResourceQuotas(c *apiclient.Client) *apiclient.Resource[*corev1.ResourceQuota] {
	return apiclient.NewResource(c, corev1.SchemeGroupVersion, "resourcequotas", &corev1.ResourceQuota{})
}
