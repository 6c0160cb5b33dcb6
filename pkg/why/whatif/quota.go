package whatif

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/quota"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/why"
)

// bound is a ResourceQuota with what would be used of it.
type bound struct {
	*corev1.ResourceQuota
	used corev1.ResourceList
}

// overQuota returns why a ResourceQuota would refuse a new pod, "" if none would; then the pod counts from now on. Only
// a scale is held against quotas: other changes end pods as well, which gives room back at moments that nobody knows.
func (f *future) overQuota(ctx context.Context, pod *model.PodInfo) string {
	if f.verb != Scale || !f.isNew(pod) {
		return ""
	}
	namespace := pod.Pod.Namespace
	list, ok := f.quotas[namespace]
	if !ok {
		found, _ := why.List[corev1.ResourceQuota](ctx, f.World, namespace, nil)
		for _, q := range found {
			list = append(list, &bound{q, q.Status.Used.DeepCopy()})
		}
		f.quotas[namespace] = list
	}
	pods := corev1.Resource("pods")
	usage := quota.Usage(pods, pod.Pod, f.Now, quota.Known{})
	var counted []*bound
	for _, b := range list {
		if !quota.InScope(&b.Spec, pods, pod.Pod) {
			continue
		}
		names := quota.Matching(pods, b.Spec.Hard)
		after := quota.Mask(quota.Add(b.used, quota.Mask(usage, names)), names)
		if beyond := quota.Beyond(after, b.Spec.Hard); len(beyond) > 0 {
			return fmt.Sprintf("exceeded quota: %s, requested: %s, used: %s, limited: %s", b.Name,
				quota.Text(quota.Mask(usage, beyond)), quota.Text(quota.Mask(b.used, beyond)),
				quota.Text(quota.Mask(b.Spec.Hard, beyond)))
		}
		counted = append(counted, b)
	}
	for _, b := range counted {
		quota.AddTo(b.used, quota.Mask(usage, quota.Matching(pods, b.Spec.Hard)))
	}
	return ""
}
