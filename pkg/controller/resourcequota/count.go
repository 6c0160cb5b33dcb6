package resourcequota

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/quota"
	"bonsai/pkg/apiclient"
)

// count returns how much of each of q's resources is used. A resource that cannot be counted keeps the value in the
// status, or is left out if it has none. wait is true while a watch that is needed has not listed its objects yet.
func (c *Controller) count(ctx context.Context, q *corev1.ResourceQuota) (used corev1.ResourceList, wait bool,
	err error) {
	used = corev1.ResourceList{}
	for gr, names := range counted(q) {
		switch gr {
		case corev1.Resource("pods"):
			addAll(used, c, q, gr, names, c.pods.InNamespace(q.Namespace))
		case corev1.Resource("services"):
			addAll(used, c, q, gr, names, c.services.InNamespace(q.Namespace))
		case corev1.Resource("persistentvolumeclaims"):
			addAll(used, c, q, gr, names, c.claims.InNamespace(q.Namespace))
		case resourcev1.Resource("resourceclaims"):
			addAll(used, c, q, gr, names, c.devices.InNamespace(q.Namespace))
		default:
			n, known, err := c.number(ctx, q, gr)
			if err != nil || known == notYet {
				return nil, known == notYet, err
			}
			for _, name := range names {
				was, had := q.Status.Used[name]
				switch {
				// of a standard resource that is not served there are none
				case known == yes, known == unserved && name != quota.CountName(gr):
					used[name] = *resource.NewQuantity(int64(n), resource.DecimalSI)
				case known == silent && had:
					used[name] = was
				}
			}
		}
	}
	return used, false, nil
}

// counted sorts q's resources by the objects that count against them.
func counted(q *corev1.ResourceQuota) map[schema.GroupResource][]corev1.ResourceName {
	out := map[schema.GroupResource][]corev1.ResourceName{}
	for _, name := range quota.Names(q.Spec.Hard) {
		for _, gr := range quota.Counted(name) {
			out[gr] = append(out[gr], name)
		}
	}
	return out
}

// addAll adds what each of the objects in q's scope uses.
func addAll[T apiclient.Object](used corev1.ResourceList, c *Controller, q *corev1.ResourceQuota,
	gr schema.GroupResource, names []corev1.ResourceName, objects []T) {
	for _, name := range names {
		if _, there := used[name]; !there { // objects of another resource may count against it, too
			used[name] = *resource.NewQuantity(0, resource.DecimalSI)
		}
	}
	now := c.Now()
	for _, o := range objects {
		if quota.InScope(&q.Spec, gr, o) {
			quota.AddTo(used, quota.Mask(quota.Usage(gr, o, now, c.known()), names))
		}
	}
}

// number returns how many objects of gr count against q: none if q has scopes, which are for pods.
func (c *Controller) number(ctx context.Context, q *corev1.ResourceQuota, gr schema.GroupResource) (int, known, error) {
	if !quota.InScope(&q.Spec, gr, nil) {
		return 0, yes, nil
	}
	return c.counters.count(ctx, q.Namespace, gr)
}
