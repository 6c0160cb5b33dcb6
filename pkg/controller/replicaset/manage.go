package replicaset

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/podtemplate"
)

// burst is how many pods one reconcile creates or deletes at most.
const burst = 500

// manage creates or deletes the difference between the active pods and the wanted number.
//
// It runs only when the cache shows all own writes. Creation starts slowly, so that a refused template costs one
// request.
func (c *Controller) manage(ctx context.Context, s *set, active []*corev1.Pod) error {
	switch diff := s.replicas - len(active); {
	case diff > 0:
		pod := podtemplate.PodOf(s.obj, c.src.kind(), s.template)
		return c.control.Change(ctx, s.obj, slices.Repeat([]*corev1.Pod{pod}, min(diff, burst)), nil)
	case diff < 0:
		now := c.Now()
		chosen := toDelete(active, c.related(s), min(-diff, burst), now)
		c.chose(active, chosen, now)
		return c.control.Change(ctx, s.obj, nil, chosen)
	default:
		return nil
	}
}

// related counts, per node, the active pods of all sets that share the set's own controller: of a Deployment's old and
// new ReplicaSets, say. Deleting where most of them are spreads the rest.
func (c *Controller) related(s *set) map[string]int {
	perNode := map[string]int{}
	count := func(o *set) {
		for _, p := range c.pods.OwnedBy(o.obj.GetUID()) {
			if controller.PodActive(p) && p.Spec.NodeName != "" {
				perNode[p.Spec.NodeName]++
			}
		}
	}
	owner := metav1.GetControllerOfNoCopy(s.obj)
	if owner == nil {
		count(s)
		return perNode
	}
	for _, o := range c.src.inNamespace(s.obj.GetNamespace()) {
		if ref := metav1.GetControllerOfNoCopy(o.obj); ref != nil && ref.UID == owner.UID {
			count(o)
		}
	}
	return perNode
}
