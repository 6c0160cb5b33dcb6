package main

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"bonsai/pkg/why"
	"bonsai/pkg/why/access"
	"bonsai/pkg/why/eviction"
	"bonsai/pkg/why/network"
	"bonsai/pkg/why/node"
	"bonsai/pkg/why/object"
	"bonsai/pkg/why/placement"
	"bonsai/pkg/why/pod"
	"bonsai/pkg/why/storage"
	"bonsai/pkg/why/workload"
)

// explainers lists who explains which kind.
func explainers() why.Explainers {
	where := why.ExplainerFunc(placement.Explain)
	return why.Explainers{
		Kinds: map[why.GroupKind]why.Explainer{
			{Kind: "Pod"}:                                 pod.Explainer{Placement: where, Access: access.Explain},
			{Kind: "Node"}:                                why.ExplainerFunc(node.Explain),
			{Kind: "Namespace"}:                           why.ExplainerFunc(object.Namespace),
			{Kind: "Service"}:                             why.InNamespace(network.Service),
			{Kind: "PersistentVolumeClaim"}:               why.ExplainerFunc(storage.Claim),
			{Kind: "PersistentVolume"}:                    why.ExplainerFunc(storage.Volume),
			{Group: "apps", Kind: "Deployment"}:           why.InNamespace(workload.Deployment),
			{Group: "apps", Kind: "ReplicaSet"}:           why.InNamespace(workload.ReplicaSet),
			{Group: "apps", Kind: "StatefulSet"}:          why.InNamespace(workload.StatefulSet),
			{Group: "apps", Kind: "DaemonSet"}:            why.InNamespace(workload.DaemonSet),
			{Group: "batch", Kind: "Job"}:                 why.InNamespace(workload.Job),
			{Group: "batch", Kind: "CronJob"}:             why.InNamespace(workload.CronJob),
			{Group: "networking.k8s.io", Kind: "Ingress"}: why.InNamespace(network.Ingress),
			{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: why.InNamespace(
				workload.HorizontalPodAutoscaler),
			{Kind: "ReplicationController"}: why.InNamespace(
				workload.ReplicationController),
			{Kind: "ResourceQuota"}:                             why.ExplainerFunc(object.Quota),
			{Group: "policy", Kind: "PodDisruptionBudget"}:      why.ExplainerFunc(eviction.Budget),
			{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: why.ExplainerFunc(network.Policy),
			{Group: rbacv1.GroupName, Kind: "RoleBinding"}:      why.ExplainerFunc(access.RoleBinding),
			{Group: rbacv1.GroupName, Kind: "ClusterRoleBinding"}: why.ExplainerFunc(
				access.ClusterRoleBinding),
			{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: why.ExplainerFunc(object.Definition),
			{Group: "apiregistration.k8s.io", Kind: "APIService"}:             why.ExplainerFunc(object.APIService),
		},
		Other: why.ExplainerFunc(object.Explain),
	}
}
