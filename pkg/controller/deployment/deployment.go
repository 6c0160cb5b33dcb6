// Package deployment moves each Deployment's pods from old ReplicaSets to the one with its current template, at the
// speed that the strategy allows, and shows the progress in status and conditions.
//
// arithmetic.go is pure: it computes the sizes from the Deployment and its ReplicaSets. rollout.go does one step of a
// rollout in each round. status.go counts and reports. The controller creates no pods: that is the ReplicaSets' work.
//
// A round takes one step and ends. The event of the ReplicaSet that it changed brings the next round, so the state of a
// rollout is always in the objects, and a restart goes on where the last process stopped.
package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/owned"
)

func kind() schema.GroupVersionKind { return appsv1.SchemeGroupVersion.WithKind("Deployment") }

// Controller reconciles Deployments.
//
// sets and pods are read from caches. written knows which own writes the cache of ReplicaSets does not show yet.
type Controller struct {
	controller.Deps
	deployments *controller.Informer[*appsv1.Deployment]
	sets        *controller.Informer[*appsv1.ReplicaSet]
	pods        *controller.Informer[*corev1.Pod]
	namespaces  *controller.Informer[*corev1.Namespace]

	writeDeployments *apiclient.Resource[*appsv1.Deployment]
	writeSets        *apiclient.Resource[*appsv1.ReplicaSet]
	written          written
	loop             *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{
		Deps:             d,
		deployments:      controller.InformerFor(d.Informers, apps.Deployments),
		writeDeployments: apps.Deployments(d.Client),
		sets:             controller.InformerFor(d.Informers, apps.ReplicaSets), writeSets: apps.ReplicaSets(d.Client),
		pods:       controller.InformerFor(d.Informers, core.Pods),
		namespaces: controller.InformerFor(d.Informers, core.Namespaces),
		written:    written{versions: map[controller.Key]string{}},
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "deployment", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	return c, errors.Join(
		controller.WatchKeys(c.loop, c.deployments),
		controller.Watch(c.loop, c.sets,
			controller.Handlers[*appsv1.ReplicaSet]{Add: c.setChanged, Update: c.setUpdated, Delete: c.setChanged}),
		controller.Watch(c.loop, c.pods, controller.Handlers[*corev1.Pod]{Delete: c.podDeleted}),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// setChanged wakes the owner, or those that may adopt an orphan.
func (c *Controller) setChanged(rs *appsv1.ReplicaSet) {
	if key, _, ok := owned.ControllerKey(rs, kind()); ok {
		c.loop.Add(key)
		return
	}
	if metav1.GetControllerOfNoCopy(rs) != nil {
		return
	}
	for _, d := range c.deployments.InNamespace(rs.Namespace) {
		sel, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err == nil && !sel.Empty() && sel.Matches(labels.Set(rs.Labels)) {
			c.loop.Add(controller.KeyOf(d))
		}
	}
}

// setUpdated wakes the previous owner too if the ReplicaSet changed hands. A resync, which changes nothing, wakes none.
func (c *Controller) setUpdated(old, rs *appsv1.ReplicaSet) {
	if old.ResourceVersion == rs.ResourceVersion {
		return
	}
	was, wasUID, had := owned.ControllerKey(old, kind())
	if _, uid, _ := owned.ControllerKey(rs, kind()); had && uid != wasUID {
		c.loop.Add(was)
	}
	c.setChanged(rs)
}

// podDeleted wakes a Recreate deployment, which waits for its old pods to be gone.
//
// A RollingUpdate needs no event of pods: the status of the ReplicaSet changes when one goes.
func (c *Controller) podDeleted(p *corev1.Pod) {
	key, _, ok := owned.ControllerKey(p, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	if !ok {
		return
	}
	rs, ok := c.sets.Get(key)
	if !ok {
		return
	}
	owner, _, ok := owned.ControllerKey(rs, kind())
	if !ok {
		return
	}
	if d, ok := c.deployments.Get(owner); ok && d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		c.loop.Add(owner)
	}
}

// Reconcile takes the next step of the rollout, or of scaling. It does nothing while the cache of ReplicaSets is behind
// this controller's own writes: judged by old sizes, it would grow or shrink a second time.
//
// A worker of the loop calls it. After the claim it chooses one of four ways: report only, for one that is being
// deleted; scale, for one that is paused or was resized; recreate; or roll. Each ends with a report.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	cached, ok := c.deployments.Get(key)
	if !ok {
		c.written.forget(key)
		return controller.Result{}, nil
	}
	if !c.written.caughtUp(key, c.sets.Seen()) {
		return controller.Result{}, nil // the event that is missing brings the Deployment back
	}
	// The round writes into its copy: the cache is shared with other controllers.
	d := cached.DeepCopy()
	sel, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return controller.Result{},
			controller.TerminalError(fmt.Errorf("reading the selector of Deployment %s: %w", key, err))
	}
	if sel.Empty() {
		c.Events.Eventf(d, corev1.EventTypeWarning, "SelectingAll",
			"This deployment is selecting all pods. A non-empty selector is required.")
		return controller.Result{}, nil
	}
	sets, err := c.claim(ctx, key, d, sel)
	if err != nil {
		return controller.Result{}, err
	}
	r := &rollout{Controller: c, d: d, all: sets, now: c.Now()}
	if d.DeletionTimestamp != nil {
		return r.report(ctx, false)
	}
	if err := r.notePause(ctx); err != nil {
		return controller.Result{}, err
	}
	switch {
	case d.Spec.Paused, r.scaled():
		return r.scale(ctx)
	case d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		return r.recreate(ctx)
	default:
		return r.roll(ctx)
	}
}

// claim returns the Deployment's ReplicaSets, oldest first: it adopts orphans that the selector matches and releases
// those that it no longer matches. Before it adopts, it reads the Deployment from the server (Fresh): one that is being
// deleted must not adopt.
//
// A ReplicaSet is adopted whatever its template: it may be one of an earlier revision.
func (c *Controller) claim(ctx context.Context, key controller.Key, d *appsv1.Deployment,
	sel labels.Selector) ([]*appsv1.ReplicaSet, error) {
	claim := owned.Claim[*appsv1.ReplicaSet]{
		Owner: d, Kind: kind(), Selector: sel, Children: c.writeSets,
		Fresh: func(ctx context.Context) (metav1.Object, error) {
			return c.writeDeployments.Get(ctx, key.Namespace, key.Name)
		},
	}
	sets, err := claim.Settle(ctx, append(c.sets.OwnedBy(d.UID), c.sets.Orphans(key.Namespace)...))
	slices.SortFunc(sets, byAge)
	return sets, err
}

// byAge orders the older first; the name decides between twins.
func byAge(a, b *appsv1.ReplicaSet) int {
	if x := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); x != 0 {
		return x
	}
	switch {
	case a.Name < b.Name:
		return -1
	case a.Name > b.Name:
		return 1
	}
	return 0
}

// sameTemplate compares the templates as the user wrote them, without the hash label that describeNext adds.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	delete(x.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(y.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(x, y)
}
