// Package statefulset keeps the pods of each StatefulSet: numbered, each with a name, a host name and labels of its own
// that the next pod of the same number takes over
// (https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/). Who a pod is (identity), what to create and
// delete (plan, roll) and the status are pure functions of one state; the history of templates is kept in
// ControllerRevisions.
//
// Claims: before a pod is created it gets a claim of each template. Claims outlive their pods, and the set, unless the
// set's policy for retention says otherwise: then they are given owners, and the garbage collector does the rest.
package statefulset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/flowcontrol"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/owned"
	"bonsai/pkg/controller/podcontrol"
)

// The next pod in the place of one that failed comes at once, the one after that after failedFirst, then after twice as
// long, up to failedMost.
//
// Kubernetes' backoff for failed pods of a set. It holds back the deletion, because the name is taken until then.
const (
	failedFirst = time.Second
	failedMost  = 10 * time.Second
)

func kind() schema.GroupVersionKind { return appsv1.SchemeGroupVersion.WithKind("StatefulSet") }

// Controller reconciles StatefulSets.
type Controller struct {
	controller.Deps
	sets      *controller.Informer[*appsv1.StatefulSet]
	revisions *controller.Informer[*appsv1.ControllerRevision]
	pods      *controller.Informer[*corev1.Pod]
	claims    *controller.Informer[*corev1.PersistentVolumeClaim]

	writeSets      *apiclient.Resource[*appsv1.StatefulSet]
	writeRevisions *apiclient.Resource[*appsv1.ControllerRevision]
	writeClaims    *apiclient.Resource[*corev1.PersistentVolumeClaim]
	expect         *owned.Expectations
	control        podcontrol.Control
	failed         *flowcontrol.Backoff // by StatefulSet and pod name
	loop           *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	pods := controller.InformerFor(d.Informers, core.Pods)
	c := &Controller{
		Deps: d,
		sets: controller.InformerFor(d.Informers, apps.StatefulSets), writeSets: apps.StatefulSets(d.Client),
		revisions:      controller.InformerFor(d.Informers, apps.ControllerRevisions),
		writeRevisions: apps.ControllerRevisions(d.Client),
		pods:           pods,
		claims:         controller.InformerFor(d.Informers, core.PersistentVolumeClaims),
		writeClaims:    core.PersistentVolumeClaims(d.Client),
		expect:         owned.NewExpectations(d.Now, pods.Seen),
		failed:         flowcontrol.NewBackOff(failedFirst, failedMost),
	}
	c.control = podcontrol.Control{Pods: core.Pods(d.Client), Expect: c.expect, Events: d.Events, Words: words}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "statefulset", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	return c, errors.Join(
		owned.WatchOwners(c.loop, c.sets, c.expect),
		controller.Watch(c.loop, c.revisions, owned.Revisions{Kind: kind(), Wake: c.loop.Add}.Handlers()),
		controller.Watch(c.loop, c.pods,
			owned.Pods{Kind: kind(), Expect: c.expect, Wake: c.loop.Add, Adopters: c.adopters}.Handlers()),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// adopters are the StatefulSets that the pod belongs to by its name and labels.
//
// The name decides as well as the labels: a pod without an ordinal has no place in the set.
func (c *Controller) adopters(p *corev1.Pod) (keys []controller.Key) {
	for _, set := range c.sets.InNamespace(p.Namespace) {
		sel, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
		if _, named := ordinalOf(set, p); named && err == nil && sel.Matches(labels.Set(p.Labels)) {
			keys = append(keys, controller.KeyOf(set))
		}
	}
	return keys
}

// Reconcile takes the next step that the pods' states allow, and reports.
//
// A worker of the loop calls it. The order is: claim the pods; settle the revisions, because new pods are made from
// them; act, unless own writes are not in the cache yet; report. A set that is being deleted is left to the garbage
// collector: whether its pods go or stay is the choice of the user who deletes it.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	set, ok := c.sets.Get(key)
	if !ok {
		return controller.Result{}, nil
	}
	sel, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return controller.Result{},
			controller.TerminalError(fmt.Errorf("reading the selector of StatefulSet %s: %w", key, err))
	}
	if set.DeletionTimestamp != nil {
		return controller.Result{}, nil
	}
	// Asked before the cache is read: what is seen later than the answer does no harm, what is seen earlier would.
	upToDate := c.expect.Satisfied(set.UID)
	pods, err := c.claim(ctx, set, sel)
	if err != nil {
		return controller.Result{}, err
	}
	h := c.history(set, sel, pods)
	now, old, err := c.settle(ctx, h, set)
	if err != nil {
		return controller.Result{}, err
	}
	s := &state{set: set, pods: pods, now: c.Now()}
	if err := c.templates(ctx, s, now, old); err != nil {
		return controller.Result{}, err
	}
	var wait time.Duration
	var errs []error
	if upToDate {
		wait, err = c.act(ctx, s)
		errs = append(errs, err, h.Trim(ctx, s.idle(old), int(count(set.Spec.RevisionHistoryLimit)), none))
	}
	status, ready := s.status(upToDate)
	errs = append(errs, c.report(ctx, set, status))
	if wait == 0 || ready > 0 && ready < wait {
		wait = ready
	}
	return controller.Result{RequeueAfter: wait}, errors.Join(errs...)
}

// claim returns the pods that are the StatefulSet's own, also those at their end.
func (c *Controller) claim(ctx context.Context, set *appsv1.StatefulSet, sel labels.Selector) ([]*corev1.Pod, error) {
	claim := owned.Claim[*corev1.Pod]{
		Owner: set, Kind: kind(), Selector: sel, Children: c.control.Pods, Fresh: c.fresh(set),
		Adoptable: func(p *corev1.Pod) bool { _, named := ordinalOf(set, p); return named },
	}
	return claim.Settle(ctx, append(c.pods.OwnedBy(set.UID), c.pods.Orphans(set.Namespace)...))
}

func (c *Controller) fresh(set *appsv1.StatefulSet) func(context.Context) (metav1.Object, error) {
	return func(ctx context.Context) (metav1.Object, error) { return c.writeSets.Get(ctx, set.Namespace, set.Name) }
}

// act carries out the plan. The duration, if positive, is when a pod that failed may be replaced.
//
// Order within it: labels are repaired first, because that is safe in any state. The owners of claims are settled
// before pods are deleted, and every pod has its claims before it is created. A pod whose claims cannot be had is
// dropped from the plan; the others go on.
func (c *Controller) act(ctx context.Context, s *state) (time.Duration, error) {
	todo := s.plan()
	errs := []error{c.repair(ctx, s.set, todo.repair)}
	wait := c.holdBack(s, &todo)
	if err := c.retain(ctx, s); err != nil {
		return wait, errors.Join(append(errs, err)...)
	}
	todo.create = slices.DeleteFunc(todo.create, func(p *corev1.Pod) bool {
		err := c.provide(ctx, s.set, p)
		if err != nil {
			errs = append(errs, err)
			c.sayUnprovided(s.set, p.Name, err)
		}
		return err != nil
	})
	if len(todo.create)+len(todo.delete) == 0 {
		return wait, errors.Join(errs...)
	}
	return wait, errors.Join(append(errs, c.control.Change(ctx, s.set, todo.create, todo.delete))...)
}

// holdBack takes failed pods out of the plan whose place had another failure recently: a pod that fails at once is not
// replaced over and over. It returns when to look again, 0 for nothing held. failed is shared by the workers, and locks
// itself; entries without a failure for twice failedMost leave it.
func (c *Controller) holdBack(s *state, todo *plan) (wait time.Duration) {
	todo.delete = slices.DeleteFunc(todo.delete, func(p *corev1.Pod) bool {
		if p.Status.Phase != corev1.PodFailed {
			return false
		}
		key := string(s.set.UID) + "/" + p.Name
		if !c.failed.IsInBackOffSinceUpdate(key, s.now) {
			c.failed.Next(key, s.now)
			c.failed.GC()
			return false
		}
		if d := c.failed.Get(key); wait == 0 || d < wait {
			wait = d
		}
		return true
	})
	return wait
}

// report stores the status if it is news.
func (c *Controller) report(ctx context.Context, set *appsv1.StatefulSet, status appsv1.StatefulSetStatus) error {
	if equality.Semantic.DeepEqual(set.Status, status) {
		return nil
	}
	set = set.DeepCopy()
	set.Status = status
	if _, err := c.writeSets.UpdateStatus(ctx, set); err != nil {
		return fmt.Errorf("updating the status of StatefulSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return nil
}

func count(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}
