// Package resourceclaim creates the ResourceClaims that pods ask for by a template, and releases what pods no longer
// use: reservations of pods that have ended, the devices of claims without a reservation, and claims that were made for
// pods that have ended.
package resourceclaim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/resource"
	"bonsai/pkg/controller"
)

// item is a pod or a claim to be looked at.
type item struct {
	pod bool
	controller.Key
}

// Controller reconciles claims, and pods with claims.
type Controller struct {
	controller.Deps
	pods      *controller.Informer[*corev1.Pod]
	users     controller.Index[*corev1.Pod] // pods by the ResourceClaims that they use
	claims    *controller.Informer[*resourcev1.ResourceClaim]
	templates *controller.Informer[*resourcev1.ResourceClaimTemplate]
	writes    *apiclient.Resource[*resourcev1.ResourceClaim]
	statuses  *apiclient.Resource[*corev1.Pod]
	made      made
	created   *prometheus.CounterVec
	loop      *controller.Loop[item]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{
		Deps: d, pods: controller.InformerFor(d.Informers, core.Pods),
		claims:    controller.InformerFor(d.Informers, resource.ResourceClaims),
		templates: controller.InformerFor(d.Informers, resource.ResourceClaimTemplates),
		writes:    resource.ResourceClaims(d.Client), statuses: core.Pods(d.Client),
		created: prometheus.NewCounterVec(
			prometheus.CounterOpts{Subsystem: "dynamic_resource_allocation", Name: "resourceclaim_creates_total",
				Help: "Number of ResourceClaims creation requests, by their status, admin access, and the group and kind of the owner"},
			[]string{"status", "admin_access", "owner_api_group", "owner_api_kind"}),
	}
	c.users = controller.NewIndex(c.pods, "resourceclaim", func(p *corev1.Pod) []string {
		var at []string
		for _, name := range controller.ResourceClaimsOf(p) {
			at = append(at, controller.Key{Namespace: p.Namespace, Name: name}.String())
		}
		return at
	})
	d.Metrics.Register(c.created)
	d.Metrics.Register(newKept(c.claims))
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "resource_claim", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	c.loop.WaitFor(c.templates.Raw().HasSynced)
	return c, errors.Join(
		controller.Watch(c.loop, c.pods, controller.Handlers[*corev1.Pod]{
			Add: c.podChanged, Update: func(_, p *corev1.Pod) { c.podChanged(p) }, Delete: c.podGone,
		}),
		controller.Watch(c.loop, c.claims, controller.Handlers[*resourcev1.ResourceClaim]{
			Add: c.claimChanged, Update: func(_, claim *resourcev1.ResourceClaim) {
				c.claimChanged(claim)
			}, Delete: func(claim *resourcev1.ResourceClaim) {
				c.made.forget(claim)
				c.wakePods(claim)
			},
		}),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

func (c *Controller) podChanged(p *corev1.Pod) {
	switch {
	case over(p):
		c.release(p)
	case len(p.Spec.ResourceClaims) > 0:
		c.loop.Add(item{pod: true, Key: controller.KeyOf(p)})
	}
}

func (c *Controller) podGone(p *corev1.Pod) {
	c.made.forgetPod(p.UID)
	c.release(p)
}

// release has the claims of a pod looked at that uses them no more: also one that was made for it, and never came into
// its status.
func (c *Controller) release(p *corev1.Pod) {
	for _, name := range controller.ResourceClaimsOf(p) {
		c.loop.Add(item{Key: controller.Key{Namespace: p.Namespace, Name: name}})
	}
	for _, claim := range c.claims.OwnedBy(p.UID) {
		c.loop.Add(item{Key: controller.KeyOf(claim)})
	}
}

func (c *Controller) claimChanged(claim *resourcev1.ResourceClaim) {
	c.made.forget(claim)
	c.loop.Add(item{Key: controller.KeyOf(claim)})
	if claim.Status.Allocation != nil {
		c.wakePods(claim)
	}
}

// wakePods has the pods looked at that use a claim: one that was made for a pod is made again when it goes too early,
// and one that is allocated may be reserved for those that have a node.
func (c *Controller) wakePods(claim *resourcev1.ResourceClaim) {
	for _, p := range c.users.At(controller.KeyOf(claim).String()) {
		if !over(p) {
			c.loop.Add(item{pod: true, Key: controller.KeyOf(p)})
		}
	}
}

// Reconcile looks at one pod or claim.
func (c *Controller) Reconcile(ctx context.Context, it item) (controller.Result, error) {
	if it.pod {
		if p, ok := c.pods.Get(it.Key); ok && p.DeletionTimestamp == nil && !over(p) {
			return controller.Result{}, c.pod(ctx, p)
		}
		return controller.Result{}, nil
	}
	claim, ok := c.claims.Get(it.Key)
	if !ok {
		return controller.Result{}, nil
	}
	return controller.Result{}, c.claim(ctx, claim)
}

// claim does the next step for a claim. What it writes brings the claim back for the one after it.
func (c *Controller) claim(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	left, err := c.left(ctx, claim)
	if err != nil {
		return err
	}
	var owner *corev1.Pod
	for _, ref := range claim.OwnerReferences {
		if ref.Controller != nil && *ref.Controller && ref.Kind == "Pod" {
			owner, _ = c.pods.Get(controller.Key{Namespace: claim.Namespace, Name: ref.Name})
		}
	}
	do := decide(claim, left, owner)
	if do.status != nil {
		if claim, err = c.writes.UpdateStatus(ctx, do.status); err != nil {
			return gone(err)
		}
	}
	switch {
	case do.unprotect:
		out := claim.DeepCopy()
		out.Finalizers = slices.DeleteFunc(out.Finalizers, func(f string) bool { return f == resourcev1.Finalizer })
		_, err = c.writes.Update(ctx, out)
	case do.remove:
		if err = c.writes.Delete(ctx, claim.Namespace, claim.Name, claim.UID); apierrors.IsConflict(err) {
			return nil // another claim of that name
		}
	}
	return gone(err)
}

// gone is err, except that the object is not there any more.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// left returns the consumers of a claim that may use it yet. A pod that the cache does not have is asked for: the cache
// may be behind.
func (c *Controller) left(ctx context.Context,
	claim *resourcev1.ResourceClaim) ([]resourcev1.ResourceClaimConsumerReference, error) {
	var left []resourcev1.ResourceClaimConsumerReference
	for _, r := range claim.Status.ReservedFor {
		if r.APIGroup != "" || r.Resource != "pods" {
			return nil, controller.TerminalError(fmt.Errorf("unsupported ReservedFor entry: %v", r))
		}
		key := controller.Key{Namespace: claim.Namespace, Name: r.Name}
		p, ok := c.pods.Get(key)
		if !ok || p.UID != r.UID {
			var err error
			if p, ok, err = c.pods.Live(ctx, key); err != nil {
				return nil, err
			}
		}
		if ok && p.UID == r.UID && !over(p) {
			left = append(left, r)
		}
	}
	return left, nil
}

// count adds one try to make a claim to the metrics.
func (c *Controller) count(spec *resourcev1.ResourceClaimSpec, err error) {
	status := "success"
	if err != nil {
		status = "failure"
	}
	c.created.WithLabelValues(status, strconv.FormatBool(admin(spec)), "", "Pod").Inc()
}
