package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/resources"
	policyv1 "k8s.io/api/policy/v1"
)

func podRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Pod"), Resource: "pods", Singular: "pod",
		Namespaced:   true,
		ShortNames:   []string{"po"},
		Categories:   []string{"all"},
		StoragePath:  "pods",
		New:          resources.Make[corev1.Pod],
		NewList:      resources.Make[corev1.PodList],
		Subresources: podSubresources(),
	}
}

func podSubresources() []resources.Subresource {
	kind := corev1.SchemeGroupVersion.WithKind
	return []resources.Subresource{
		resources.Action("attach", kind("PodAttachOptions"), "create", "get"),
		resources.Action("binding", kind("Binding"), "create"),
		{Name: "ephemeralcontainers", Verbs: []string{"get", "patch", "update"}, Strategy: &resources.Strategy{}},
		resources.Action("eviction", policyv1.SchemeGroupVersion.WithKind("Eviction"), "create"),
		resources.Action("exec", kind("PodExecOptions"), "create", "get"),
		{Name: "log", Verbs: []string{"get"}},
		resources.Action("portforward", kind("PodPortForwardOptions"), "create", "get"),
		resources.Action("proxy", kind("PodProxyOptions"), "create", "delete", "get", "patch", "update"),
		resources.Status(resources.Strategy{}),
	}
}
