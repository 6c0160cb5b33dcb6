// Package apps gives access to the kinds of apps/v1 that components use.
package apps

import (
	appsv1 "k8s.io/api/apps/v1"

	"bonsai/pkg/apiclient"
)

// ReplicaSets gives access to replicasets.
func ReplicaSets(c *apiclient.Client) *apiclient.Resource[*appsv1.ReplicaSet] {
	return apiclient.NewResource(c, appsv1.SchemeGroupVersion, "replicasets", &appsv1.ReplicaSet{})
}

// Deployments gives access to deployments.
func Deployments(c *apiclient.Client) *apiclient.Resource[*appsv1.Deployment] {
	return apiclient.NewResource(c, appsv1.SchemeGroupVersion, "deployments", &appsv1.Deployment{})
}

// DaemonSets gives access to daemonsets.
func DaemonSets(c *apiclient.Client) *apiclient.Resource[*appsv1.DaemonSet] {
	return apiclient.NewResource(c, appsv1.SchemeGroupVersion, "daemonsets", &appsv1.DaemonSet{})
}

// StatefulSets gives access to statefulsets.
func StatefulSets(c *apiclient.Client) *apiclient.Resource[*appsv1.StatefulSet] {
	return apiclient.NewResource(c, appsv1.SchemeGroupVersion, "statefulsets", &appsv1.StatefulSet{})
}

// ControllerRevisions gives access to controllerrevisions.
func ControllerRevisions(c *apiclient.Client) *apiclient.Resource[*appsv1.ControllerRevision] {
	return apiclient.NewResource(c, appsv1.SchemeGroupVersion, "controllerrevisions", &appsv1.ControllerRevision{})
}
