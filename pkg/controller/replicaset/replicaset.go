// Package replicaset keeps as many pods running as each ReplicaSet, or ReplicationController, asks for. Both kinds
// share one implementation: a source turns either into the same small view.
package replicaset

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/owned"
	"bonsai/pkg/controller/podcontrol"
)

// Controller reconciles the sets of one kind.
type Controller struct {
	controller.Deps
	src     source
	pods    *controller.Informer[*corev1.Pod]
	writes  *apiclient.Resource[*corev1.Pod]
	expect  *owned.Expectations
	control podcontrol.Control
	ages    prometheus.Observer // nil: not counted
	loop    *controller.Loop[controller.Key]
}

// New returns the controller of ReplicaSets.
func New(d controller.Deps) (*Controller, error) {
	src := replicaSets{cache: controller.InformerFor(d.Informers, apps.ReplicaSets), client: apps.ReplicaSets(d.Client)}
	c, err := build(d, "replicaset", src)
	c.ages = newAges(d.Metrics)
	return c, err
}

// NewReplicationController returns the controller of ReplicationControllers.
func NewReplicationController(d controller.Deps) (*Controller, error) {
	src := replicationControllers{cache: controller.InformerFor(d.Informers, core.ReplicationControllers),
		client: core.ReplicationControllers(d.Client)}
	return build(d, "replicationmanager", src)
}

func build(d controller.Deps, name string, src source) (*Controller, error) {
	pods := controller.InformerFor(d.Informers, core.Pods)
	c := &Controller{
		Deps: d, src: src, pods: pods, writes: core.Pods(d.Client),
		expect: owned.NewExpectations(d.Now, pods.Seen),
	}
	c.control = podcontrol.Control{Pods: c.writes, Expect: c.expect, Events: d.Events}
	c.loop = controller.NewLoop(controller.LoopConfig{Name: name, Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	err := errors.Join(
		src.watch(c.loop, c.expect),
		controller.Watch(c.loop, c.pods,
			owned.Pods{Kind: src.kind(), Expect: c.expect, Wake: c.loop.Add, Adopters: c.adopters}.Handlers()),
	)
	return c, err
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// adopters are the sets that select the pod.
func (c *Controller) adopters(p *corev1.Pod) (keys []controller.Key) {
	for _, s := range c.src.inNamespace(p.Namespace) {
		if s.selector.Matches(labels.Set(p.Labels)) {
			keys = append(keys, controller.KeyOf(s.obj))
		}
	}
	return keys
}

// Reconcile creates or deletes pods until the set has as many active ones as it asks for, and reports its status.
//
// A worker of the loop calls it. The status is written even if creating failed, because it has the condition that says
// so.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	s, err := c.src.get(key)
	if s == nil || err != nil {
		return controller.Result{}, err
	}
	// Asked before the cache is read: in the other order a pod could be missing in the list, arrive, and be made twice.
	upToDate := c.expect.Satisfied(s.obj.GetUID())
	pods, err := c.claim(ctx, key, s)
	if err != nil {
		return controller.Result{}, err
	}
	active, terminating := split(pods)
	var manageErr error
	if upToDate && s.obj.GetDeletionTimestamp() == nil {
		manageErr = c.manage(ctx, s, active)
	}
	now := c.Now()
	status, wait := statusOf(s, active, terminating, manageErr, now)
	// nothing was done about a new size yet, and who reads the status must not take these pods for what became of it
	if !upToDate {
		status.ObservedGeneration = s.status.ObservedGeneration
	}
	if !sameStatus(s.status, status) {
		if err := c.src.setStatus(ctx, s, status); err != nil {
			return controller.Result{}, errors.Join(manageErr, fmt.Errorf("updating the status of %s: %w", key, err))
		}
	}
	return controller.Result{RequeueAfter: wait}, manageErr
}

// claim returns the pods that are the set's own, also those at their end.
func (c *Controller) claim(ctx context.Context, key controller.Key, s *set) ([]*corev1.Pod, error) {
	claim := owned.Claim[*corev1.Pod]{
		Owner: s.obj, Kind: c.src.kind(), Selector: s.selector, Children: c.writes, Adoptable: controller.PodActive,
		Fresh: func(ctx context.Context) (metav1.Object, error) { return c.src.fresh(ctx, key) },
	}
	return claim.Settle(ctx, append(c.pods.OwnedBy(s.obj.GetUID()), c.pods.Orphans(key.Namespace)...))
}

// split separates the pods that count from those that are only still going away.
func split(pods []*corev1.Pod) (active, terminating []*corev1.Pod) {
	for _, p := range pods {
		switch {
		case controller.PodTerminal(p):
		case p.DeletionTimestamp != nil:
			terminating = append(terminating, p)
		default:
			active = append(active, p)
		}
	}
	return active, terminating
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
