package core

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/podspec/downward"
	"bonsai/api/resources"
)

func podRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Pod"), Resource: "pods", Singular: "pod",
		Namespaced:   true,
		ShortNames:   []string{"po"},
		Categories:   []string{"all"},
		StoragePath:  "pods",
		New:          resources.Make[corev1.Pod],
		Strategy:     podStrategy().Strategy(),
		Subresources: podSubresources(),
		Fields:       resources.Fields(podFields),
		FieldNames:   downward.Selectable(),
		Columns:      podColumns(),
		Cells:        resources.Cells(podCells),
		Conditions:   resources.Conditions(podRowConditions),
	}
}

func podSubresources() []resources.Subresource {
	kind := corev1.SchemeGroupVersion.WithKind
	ephemeral, resize := podEphemeralStrategy().Strategy(), podResizeStrategy().Strategy()
	return []resources.Subresource{
		resources.Action("attach", kind("PodAttachOptions"), "create", "get"),
		resources.Action("binding", kind("Binding"), "create"),
		{Name: "ephemeralcontainers", Verbs: []string{"get", "patch", "update"}, Strategy: &ephemeral},
		evictions(),
		resources.Action("exec", kind("PodExecOptions"), "create", "get"),
		{Name: "log", Verbs: []string{"get"}},
		resources.Action("portforward", kind("PodPortForwardOptions"), "create", "get"),
		resources.Action("proxy", kind("PodProxyOptions"), "create", "delete", "get", "patch", "update"),
		{Name: "resize", Verbs: []string{"get", "patch", "update"}, Strategy: &resize},
		resources.Status(podStatusStrategy().Strategy()),
	}
}

func podFields(p *corev1.Pod) fields.Set {
	ip := p.Status.PodIP
	if ip == "" && len(p.Status.PodIPs) > 0 {
		ip = p.Status.PodIPs[0].IP
	}
	return fields.Set{
		"spec.nodeName":            p.Spec.NodeName,
		"spec.restartPolicy":       string(p.Spec.RestartPolicy),
		"spec.schedulerName":       p.Spec.SchedulerName,
		"spec.serviceAccountName":  p.Spec.ServiceAccountName,
		"spec.hostNetwork":         boolText(p.Spec.HostNetwork),
		"status.phase":             string(p.Status.Phase),
		"status.podIP":             ip,
		"status.podIPs":            "", // can be asked for, and matches nothing
		"status.nominatedNodeName": p.Status.NominatedNodeName,
	}
}

func boolText(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// evictions is the subresource that deletes a pod if its disruption budget allows it. Clients older than Kubernetes
// 1.22 name the version v1beta1.
func evictions() resources.Subresource {
	kind := policyv1.SchemeGroupVersion.WithKind("Eviction")
	sub := resources.Action("eviction", kind, "create")
	sub.Accepts = []schema.GroupVersionKind{kind.GroupKind().WithVersion("v1beta1")}
	return sub
}
