package replicaset

import (
	"context"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/controller"
	"bonsai/pkg/trace"
)

// burst is how many pods one reconcile creates or deletes at most.
const burst = 500

// manage creates or deletes the difference between the active pods and the wanted number.
func (c *Controller) manage(ctx context.Context, key controller.Key, s *set, active []*corev1.Pod) error {
	switch diff := s.replicas - len(active); {
	case diff > 0:
		return c.create(ctx, key, s, min(diff, burst))
	case diff < 0:
		return c.delete(ctx, key, s, toDelete(active, c.related(s), min(-diff, burst), c.Now()))
	default:
		return nil
	}
}

// create makes n pods in batches that double while all goes well, so that a hopeless template costs few requests.
func (c *Controller) create(ctx context.Context, key controller.Key, s *set, n int) error {
	c.expect.Expect(key, n)
	pod := podOf(s, c.src.kind().GroupVersion().String(), c.src.kind().Kind)
	done, err := slowStart(n, func() error {
		made, err := c.writes.Create(ctx, pod.DeepCopy()) // the encoder writes into what it encodes
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			// The namespace is going away and takes the set along; the pod will not be missed.
			c.expect.Created(key, 1)
			return nil
		}
		if err != nil {
			c.expect.Created(key, 1)
			c.Events.Eventf(s.obj, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
			return err
		}
		c.Events.Eventf(s.obj, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", made.Name)
		return nil
	})
	if skipped := n - done; skipped > 0 {
		c.expect.Created(key, skipped)
	}
	return err
}

// slowStart calls f n times in batches of 1, 2, 4, … and stops after the first batch with an error. It returns how many
// calls were made, and the first error.
func slowStart(n int, f func() error) (int, error) {
	called := 0
	for size := 1; called < n; size *= 2 {
		batch := min(size, n-called)
		called += batch
		if err := together(batch, func(int) error { return f() }); err != nil {
			return called, err
		}
	}
	return called, nil
}

// together calls f for 0..n-1 at once and returns the first error in their order: the others say the same.
func together(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// podOf makes the pod that the set's template describes, without a name yet.
func podOf(s *set, apiVersion, kind string) *corev1.Pod {
	t := s.template.DeepCopy()
	yes := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.obj.GetNamespace(), GenerateName: s.obj.GetName() + "-",
			Labels: t.Labels, Annotations: t.Annotations, Finalizers: t.Finalizers,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: s.obj.GetName(), UID: s.obj.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes}},
		},
		Spec: t.Spec,
	}
	trace.HandOn(p, s.obj)
	return p
}

// delete removes the victims, all at once.
func (c *Controller) delete(ctx context.Context, key controller.Key, s *set, victims []*corev1.Pod) error {
	uids := make([]types.UID, len(victims))
	for i, p := range victims {
		uids[i] = p.UID
	}
	c.expect.Expect(key, 0, uids...)
	var failed atomic.Int32
	return together(len(victims), func(i int) error {
		p := victims[i]
		err := c.writes.Delete(ctx, p.Namespace, p.Name, p.UID)
		if err == nil {
			c.Events.Eventf(s.obj, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", p.Name)
			return nil
		}
		c.expect.Deleted(key, p.UID)
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		if failed.Add(1) == 1 {
			c.Events.Eventf(s.obj, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
		}
		return err
	})
}

// related counts, per node, the active pods of all sets that share the set's own controller: of a Deployment's old and new
// ReplicaSets, say. Deleting where most of them are spreads the rest.
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
