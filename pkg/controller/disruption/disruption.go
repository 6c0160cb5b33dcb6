// Package disruption keeps the status of PodDisruptionBudgets: how many of the selected pods may be evicted now. It
// also removes the condition DisruptionTarget from pods that were marked and then not deleted.
//
// The API server spends from the status when it evicts, and this controller fills it up again; the resourceVersion of
// each write keeps the two from overwriting one another.
package disruption

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/policy"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/podindex"
)

// Controller reconciles PodDisruptionBudgets, and pods with the condition DisruptionTarget.
type Controller struct {
	controller.Deps
	budgets *controller.Informer[*policyv1.PodDisruptionBudget]
	pods    *controller.Informer[*corev1.Pod]
	byLabel podindex.ByLabel
	scales  *finder
	writes  *apiclient.Resource[*policyv1.PodDisruptionBudget]
	marks   *apiclient.Resource[*corev1.Pod]
	loop    *controller.Loop[controller.Key]
	stale   *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{
		Deps:    d,
		budgets: controller.InformerFor(d.Informers, policy.PodDisruptionBudgets),
		pods:    controller.InformerFor(d.Informers, core.Pods),
		scales:  newFinder(d),
		writes:  policy.PodDisruptionBudgets(d.Client),
		marks:   core.Pods(d.Client),
	}
	c.byLabel = podindex.NewByLabel(c.pods)
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "disruption", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	c.stale = controller.NewLoop(
		controller.LoopConfig{Name: "stale_pod_disruption", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.reconcilePod)
	return c, errors.Join(
		controller.WatchKeys(c.loop, c.budgets),
		controller.Watch(c.loop, c.pods,
			controller.Handlers[*corev1.Pod]{Add: c.wakePod, Delete: c.wakePod, Update: func(old, p *corev1.Pod) {
				if counts(old, p) {
					c.wakePod(old)
					c.wakePod(p)
				}
			}}),
		controller.Watch(c.stale, c.pods,
			controller.Handlers[*corev1.Pod]{Add: c.wakeMarked, Update: func(_, p *corev1.Pod) {
				c.wakeMarked(p)
			}}),
		c.scales.watch(c.loop, c.wakeFor),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.loop.Run(ctx) })
	g.Go(func() error { return c.stale.Run(ctx) })
	return g.Wait()
}

// counts reports whether a change of a pod may change what a budget allows.
func counts(old, p *corev1.Pod) bool {
	return old.DeletionTimestamp.IsZero() != p.DeletionTimestamp.IsZero() ||
		controller.PodReady(old) != controller.PodReady(p) ||
		!labels.Equals(old.Labels, p.Labels) ||
		!apiequality.Semantic.DeepEqual(metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(p))
}

func (c *Controller) wakePod(p *corev1.Pod) { c.wakeFor(p.Namespace, p.Labels) }

// wakeFor adds the budgets that are about pods with these labels.
func (c *Controller) wakeFor(namespace string, of labels.Set) {
	for _, b := range c.budgets.InNamespace(namespace) {
		if s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && s.Matches(of) {
			c.loop.Add(controller.KeyOf(b))
		}
	}
}

// Reconcile counts the pods of one budget and writes what it allows. If they cannot be counted it allows nothing, and
// says why.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	b, ok := c.budgets.Get(key)
	if !ok {
		return controller.Result{}, nil
	}
	now := c.Now()
	pods, err := c.selected(b)
	if err == nil && len(pods) == 0 {
		c.Events.Event(b, corev1.EventTypeNormal, "NoPods", "No matching pods found")
	}
	var want expectation
	if err == nil {
		want, err = c.expect(ctx, b, pods)
	}
	if err != nil {
		c.Events.Eventf(b, corev1.EventTypeWarning, "CalculateExpectedPodCountFailed",
			"Failed to calculate the number of expected pods: %v", err)
		// What is missing may come without an event: the kind of an owner, or its scale.
		return controller.Result{Backoff: true}, c.write(ctx, b, failed(&b.Status, err, now))
	}
	status, overdue, again := decide(b, pods, want, now)
	for _, p := range overdue {
		c.Events.Eventf(p, corev1.EventTypeWarning, "NotDeleted",
			"Pod was expected by PDB %s/%s to be deleted but it wasn't", b.Namespace, b.Name)
	}
	return controller.Result{RequeueAfter: again}, c.write(ctx, b, status)
}

// expect asks for the scales of the pods' controllers if the budget depends on them.
//
// A budget in relation to the wanted size needs the owners' scales, which costs a request where no cache has them.
func (c *Controller) expect(ctx context.Context, b *policyv1.PodDisruptionBudget, pods []*corev1.Pod) (expectation,
	error) {
	if !relative(&b.Spec) {
		return absolute(&b.Spec, len(pods)), nil
	}
	scales := map[types.UID]int32{}
	unmanaged := false
	for _, p := range firstOfEach(pods) {
		ref := metav1.GetControllerOfNoCopy(p)
		if ref == nil {
			unmanaged = true
			continue
		}
		found, ok, err := c.scales.find(ctx, p.Namespace, ref)
		if err != nil {
			return expectation{}, err
		}
		if !ok {
			return expectation{}, fmt.Errorf("found no controllers for pod %q", p.Name)
		}
		scales[found.uid] = found.replicas
	}
	if unmanaged {
		c.Events.Eventf(b, corev1.EventTypeWarning, "UnmanagedPods",
			"Pods selected by this PodDisruptionBudget (selector: %v) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.", b.Spec.Selector)
	}
	var sum int32
	for _, n := range scales {
		sum += n
	}
	return share(&b.Spec, sum)
}

// write stores the status if it changes; it fails with a conflict if b is not the newest, as an eviction may have spent
// from it.
func (c *Controller) write(ctx context.Context, b *policyv1.PodDisruptionBudget,
	status policyv1.PodDisruptionBudgetStatus) error {
	if apiequality.Semantic.DeepEqual(b.Status, status) {
		return nil
	}
	b = b.DeepCopy()
	b.Status = status
	if _, err := c.writes.UpdateStatus(ctx, b); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of the disruption budget %s/%s: %w", b.Namespace, b.Name, err)
	}
	return nil
}

// selected returns the pods that a budget selects.
func (c *Controller) selected(b *policyv1.PodDisruptionBudget) ([]*corev1.Pod, error) {
	if b.Spec.Selector == nil {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return nil, err
	}
	var of []*corev1.Pod
	if label, value, ok := anyLabel(b.Spec.Selector.MatchLabels); ok {
		of = c.byLabel.With(b.Namespace, label, value)
	} else {
		of = c.pods.InNamespace(b.Namespace)
	}
	var out []*corev1.Pod
	for _, p := range of {
		if selector.Matches(labels.Set(p.Labels)) {
			out = append(out, p)
		}
	}
	return out, nil
}

// anyLabel is one of the labels, by which to look for what has all of them.
func anyLabel(all map[string]string) (label, value string, ok bool) {
	for label, value := range all {
		return label, value, true
	}
	return "", "", false
}

const (
	// deletionTimeout is how long after its eviction a pod may still be seen without being deleted.
	deletionTimeout = 2 * time.Minute
	// markTimeout is how long a pod may be marked for a disruption that does not come.
	markTimeout = 2 * time.Minute
)
