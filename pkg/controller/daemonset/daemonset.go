// Package daemonset keeps one pod of each DaemonSet on every node that it is for, and replaces them when the template
// changes. Where pods belong (place), what to create and delete (spread, update) and the status are pure functions of
// one state; the history of templates is kept in ControllerRevisions.
package daemonset

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

const (
	// burst is how many pods one reconcile creates, and how many it deletes, at most. The rest needs no timer: the
	// events of these pods wake the DaemonSet again.
	burst = 250
	// A node whose pod failed gets the next one after failedFirst, then after twice as long, up to failedMost.
	//
	// Without the delay a daemon that exits at once would be created as fast as the API server allows, on every node.
	failedFirst = time.Second
	failedMost  = 15 * time.Minute
)

func kind() schema.GroupVersionKind { return appsv1.SchemeGroupVersion.WithKind("DaemonSet") }

// Controller reconciles DaemonSets.
type Controller struct {
	controller.Deps
	sets      *controller.Informer[*appsv1.DaemonSet]
	revisions *controller.Informer[*appsv1.ControllerRevision]
	pods      *controller.Informer[*corev1.Pod]
	nodes     *controller.Informer[*corev1.Node]

	// Writes go to the server; the next round sees them in the caches. expect knows those that the caches do not show
	// yet.
	writeSets      *apiclient.Resource[*appsv1.DaemonSet]
	writeRevisions *apiclient.Resource[*appsv1.ControllerRevision]
	expect         *owned.Expectations
	control        podcontrol.Control
	// failed is shared by the workers, and locks itself. Entries without a failure for twice failedMost leave it.
	failed *flowcontrol.Backoff // by DaemonSet and node
	loop   *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	pods := controller.InformerFor(d.Informers, core.Pods)
	c := &Controller{
		Deps: d,
		sets: controller.InformerFor(d.Informers, apps.DaemonSets), writeSets: apps.DaemonSets(d.Client),
		revisions:      controller.InformerFor(d.Informers, apps.ControllerRevisions),
		writeRevisions: apps.ControllerRevisions(d.Client),
		pods:           pods,
		nodes:          controller.InformerFor(d.Informers, core.Nodes),
		expect:         owned.NewExpectations(d.Now, pods.Seen),
		failed:         flowcontrol.NewBackOff(failedFirst, failedMost),
	}
	c.control = podcontrol.Control{Pods: core.Pods(d.Client), Expect: c.expect, Events: d.Events}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "daemonset", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	return c, errors.Join(
		owned.WatchOwners(c.loop, c.sets, c.expect),
		controller.Watch(c.loop, c.revisions, owned.Revisions{Kind: kind(), Wake: c.loop.Add}.Handlers()),
		controller.Watch(c.loop, c.pods,
			owned.Pods{Kind: kind(), Expect: c.expect, Wake: c.loop.Add, Adopters: c.adopters}.Handlers()),
		controller.Watch(c.loop, c.nodes,
			controller.Handlers[*corev1.Node]{Add: c.nodeAdded, Update: c.nodeUpdated, Delete: c.nodeDeleted}),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// adopters are the DaemonSets that select the pod.
func (c *Controller) adopters(p *corev1.Pod) (keys []controller.Key) {
	for _, ds := range c.sets.InNamespace(p.Namespace) {
		if sel, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector); err == nil && !sel.Empty() &&
			sel.Matches(labels.Set(p.Labels)) {
			keys = append(keys, controller.KeyOf(ds))
		}
	}
	return keys
}

// nodeAdded wakes the DaemonSets for which the node is. It costs one placement for each DaemonSet, on the goroutine
// that delivers the events of nodes.
func (c *Controller) nodeAdded(node *corev1.Node) {
	for _, ds := range c.sets.List() {
		if p := placerOf(ds).place(node); p.run || p.stay {
			c.loop.Add(controller.KeyOf(ds))
		}
	}
}

// nodeUpdated wakes the DaemonSets to which the change matters. Most changes of nodes are heartbeats.
//
// place reads labels, taints and the name, and the name never changes: no other change can matter. A comparison of
// placements keeps a label that no DaemonSet selects by from waking all of them.
func (c *Controller) nodeUpdated(old, node *corev1.Node) {
	if equality.Semantic.DeepEqual(old.Labels, node.Labels) &&
		equality.Semantic.DeepEqual(old.Spec.Taints, node.Spec.Taints) {
		return
	}
	for _, ds := range c.sets.List() {
		if from := placerOf(ds); from.place(old) != from.place(node) {
			c.loop.Add(controller.KeyOf(ds))
		}
	}
}

// nodeDeleted wakes the DaemonSets that counted the node, for their status. The pods go through the pod garbage
// collector.
func (c *Controller) nodeDeleted(node *corev1.Node) { c.nodeAdded(node) }

// Reconcile puts pods where they belong; where all is in place, it takes the next step of an update.
//
// A worker of the loop calls it. The order is: claim the pods, because all else counts them; settle the revision,
// because new pods carry its hash; act, unless own writes are still on their way; then report, which also runs after a
// failed act so that the status never lags behind an error that repeats.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	ds, ok := c.sets.Get(key)
	if !ok {
		return controller.Result{}, nil
	}
	sel, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
	if err != nil {
		return controller.Result{},
			controller.TerminalError(fmt.Errorf("reading the selector of DaemonSet %s: %w", key, err))
	}
	if sel.Empty() {
		c.Events.Eventf(ds, corev1.EventTypeWarning, "SelectingAll",
			"This daemon set is selecting all pods. A non-empty selector is required.")
		return controller.Result{}, nil
	}
	if ds.DeletionTimestamp != nil {
		return controller.Result{}, nil
	}
	// Asked before the caches are read. In the other order a pod could be missing in the list, arrive, and satisfy the
	// expectation: the node would get a second pod.
	upToDate := c.expect.Satisfied(ds.UID)
	pods, err := c.claim(ctx, key, ds, sel)
	if err != nil {
		return controller.Result{}, err
	}
	history := c.history(ds, sel, pods)
	now, old, err := c.settle(ctx, history, ds)
	if err != nil {
		return controller.Result{}, err
	}
	s := &state{ds: ds, hash: revisionOf(now), nodes: c.nodes.List(), pods: byNode(pods), now: c.Now()}
	// The same order in every round, the oldest node first: burst, maxUnavailable and maxSurge are spent from the
	// front.
	slices.SortFunc(s.nodes, func(a, b *corev1.Node) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	var wait time.Duration
	var errs []error
	if upToDate {
		wait, err = c.act(ctx, s)
		errs = append(errs, err, history.Trim(ctx, old, int(count(ds.Spec.RevisionHistoryLimit)), inUse(pods)))
	}
	status, ready := s.status(upToDate)
	errs = append(errs, c.report(ctx, ds, status))
	if wait == 0 || ready > 0 && ready < wait {
		wait = ready
	}
	return controller.Result{RequeueAfter: wait}, errors.Join(errs...)
}

// claim returns the pods that are the DaemonSet's own, also those at their end.
//
// Pods at their end are included because spread deletes them, and only pods that still run are adopted. The server
// confirms before the first adoption that the DaemonSet still exists.
func (c *Controller) claim(ctx context.Context, key controller.Key, ds *appsv1.DaemonSet,
	sel labels.Selector) ([]*corev1.Pod, error) {
	claim := owned.Claim[*corev1.Pod]{
		Owner: ds, Kind: kind(), Selector: sel, Children: c.control.Pods, Adoptable: controller.PodActive,
		Fresh: func(ctx context.Context) (metav1.Object, error) {
			return c.writeSets.Get(ctx, key.Namespace, key.Name)
		},
	}
	return claim.Settle(ctx, append(c.pods.OwnedBy(ds.UID), c.pods.Orphans(key.Namespace)...))
}

// act spreads pods. Only when that has nothing left to do does it go on with a rolling update: a set that lacks pods
// never deletes working ones. With OnDelete there is no second step. The duration, if positive, is when a pod that
// failed may be replaced.
func (c *Controller) act(ctx context.Context, s *state) (time.Duration, error) {
	todo := s.spread()
	wait := c.holdBack(s, &todo)
	if len(todo.create)+len(todo.delete) == 0 &&
		s.ds.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		todo = s.update()
	}
	if len(todo.create)+len(todo.delete) == 0 {
		return wait, nil
	}
	var create []*corev1.Pod
	for _, node := range todo.create[:min(len(todo.create), burst)] {
		create = append(create, podFor(s.ds, s.hash, node))
	}
	return wait, c.control.Change(ctx, s.ds, create, todo.delete[:min(len(todo.delete), burst)])
}

// holdBack takes failed pods out of the plan whose node had another failure recently: a pod that fails at once is not
// replaced over and over. A deletion that goes ahead starts or doubles the delay of that node. Succeeded pods are never
// held back: a daemon that ends without an error only restarts. It returns when to look again, 0 for nothing held.
func (c *Controller) holdBack(s *state, todo *plan) (wait time.Duration) {
	for _, p := range todo.ended {
		if p.Status.Phase == corev1.PodSucceeded {
			c.Events.Eventf(s.ds, corev1.EventTypeNormal, "SucceededDaemonPod",
				"Found succeeded daemon pod %s/%s on node %s, will try to delete it", p.Namespace, p.Name, nodeOf(p))
			continue
		}
		key := string(s.ds.UID) + "/" + nodeOf(p)
		if c.failed.IsInBackOffSinceUpdate(key, s.now) {
			todo.delete = slices.DeleteFunc(todo.delete, func(o *corev1.Pod) bool { return o == p })
			if d := c.failed.Get(key); wait == 0 || d < wait {
				wait = d
			}
			continue
		}
		c.failed.Next(key, s.now)
		c.failed.GC()
		c.Events.Eventf(s.ds, corev1.EventTypeWarning, "FailedDaemonPod",
			"Found failed daemon pod %s/%s on node %s, will try to kill it", p.Namespace, p.Name, nodeOf(p))
	}
	return wait
}

// report stores the status if it changed. The write carries the cached resourceVersion: if the spec changed since, it
// is a conflict, and the next round counts again.
func (c *Controller) report(ctx context.Context, ds *appsv1.DaemonSet, status appsv1.DaemonSetStatus) error {
	if equality.Semantic.DeepEqual(ds.Status, status) {
		return nil
	}
	ds = ds.DeepCopy()
	ds.Status = status
	if _, err := c.writeSets.UpdateStatus(ctx, ds); err != nil {
		return fmt.Errorf("updating the status of DaemonSet %s/%s: %w", ds.Namespace, ds.Name, err)
	}
	return nil
}
