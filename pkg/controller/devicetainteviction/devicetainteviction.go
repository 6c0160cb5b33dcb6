// Package devicetainteviction deletes pods that use devices with NoExecute taints which their claims do not tolerate,
// or no longer. Taints come from drivers, in ResourceSlices, and from administrators, in DeviceTaintRules.
package devicetainteviction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	api "bonsai/api/resource"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/resource"
	"bonsai/pkg/controller"
)

// Controller reconciles pods with claims.
type Controller struct {
	controller.Deps
	pods   *controller.Informer[*corev1.Pod]
	claims *controller.Informer[*resourcev1.ResourceClaim]
	slices *controller.Informer[*resourcev1.ResourceSlice]
	rules  *controller.Informer[*resourcev1.DeviceTaintRule]
	pools  pools
	writes *apiclient.Resource[*corev1.Pod]
	// ruleWrites writes the status of rules; tally has what it says.
	ruleWrites *apiclient.Resource[*resourcev1.DeviceTaintRule]
	tally      *tally
	// deleted and latency are upstream's metrics; latency runs from when a pod had to leave.
	deleted prometheus.Counter
	latency prometheus.Histogram
	loop    *controller.Loop[controller.Key]
	status  *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	const subsystem = "device_taint_eviction_controller"
	c := &Controller{
		Deps: d, pods: controller.InformerFor(d.Informers, core.Pods),
		claims: controller.InformerFor(d.Informers, resource.ResourceClaims),
		slices: controller.InformerFor(d.Informers, resource.ResourceSlices),
		rules:  controller.InformerFor(d.Informers, resource.DeviceTaintRules), writes: core.Pods(d.Client),
		ruleWrites: resource.DeviceTaintRules(d.Client), tally: newTally(),
		deleted: prometheus.NewCounter(prometheus.CounterOpts{Subsystem: subsystem, Name: "pod_deletions_total",
			Help: "Total number of Pods deleted by DeviceTaintEvictionController since its start."}),
		latency: prometheus.NewHistogram(
			prometheus.HistogramOpts{Subsystem: subsystem, Name: "pod_deletion_duration_seconds",
				Help:    "Latency, in seconds, between the time when a device taint effect has been activated and a Pod's deletion via DeviceTaintEvictionController.",
				Buckets: []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240}}),
	}
	c.pools = newPools(c.slices, c.claims)
	d.Metrics.Register(c.deleted)
	d.Metrics.Register(c.latency)
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "device-taint-eviction-controller", Workers: d.Workers, Log: d.Log,
			Metrics: d.Metrics}, c.Reconcile)
	c.status = controller.NewLoop(controller.LoopConfig{Name: "device-taint-eviction-status", Workers: 1, Log: d.Log,
		Metrics: d.Metrics}, c.reconcileRule)
	for _, synced := range []cache.InformerSynced{c.pods.Raw().HasSynced, c.claims.Raw().HasSynced,
		c.slices.Raw().HasSynced} {
		c.loop.WaitFor(synced)
		c.status.WaitFor(synced)
	}
	return c, errors.Join(
		controller.Watch(c.loop, c.pods, controller.Handlers[*corev1.Pod]{
			Add: func(p *corev1.Pod) { c.podChanged(nil, p) }, Update: c.podChanged,
		}),
		controller.Watch(c.loop, c.claims, controller.Handlers[*resourcev1.ResourceClaim]{
			Add: c.wake, Update: func(_, claim *resourcev1.ResourceClaim) { c.wake(claim) },
		}),
		controller.Watch(c.loop, c.slices, controller.Handlers[*resourcev1.ResourceSlice]{
			Add: c.sliceChanged, Update: func(_, s *resourcev1.ResourceSlice) { c.sliceChanged(s) },
		}),
		controller.Watch(c.loop, c.rules, controller.Handlers[*resourcev1.DeviceTaintRule]{
			Add: c.ruleChanged, Update: func(_, r *resourcev1.DeviceTaintRule) { c.ruleChanged(r) },
		}),
		controller.WatchKeys(c.status, c.rules),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	var all sync.WaitGroup
	all.Go(func() { _ = c.status.Run(ctx) })
	defer all.Wait()
	return c.loop.Run(ctx)
}

func (c *Controller) podChanged(old, p *corev1.Pod) {
	if concerns(old, p) {
		c.loop.Add(controller.KeyOf(p))
	}
}

// sliceChanged wakes the pods that use the pool of a slice with taints that evict. A slice that loses such taints wakes
// none: the taints are read again before a pod is evicted.
func (c *Controller) sliceChanged(s *resourcev1.ResourceSlice) {
	if !evicts(s) {
		return
	}
	for _, claim := range c.pools.claimsOn(poolOf(s)) {
		c.wake(claim)
	}
}

// ruleChanged wakes the pods that use devices on which a rule puts a taint that evicts.
func (c *Controller) ruleChanged(r *resourcev1.DeviceTaintRule) {
	if r.Spec.Taint.Effect != resourcev1.DeviceTaintEffectNoExecute {
		return
	}
	for _, claim := range c.claims.List() {
		c.wake(claim)
	}
}

// wake adds the pods that a claim is reserved for.
func (c *Controller) wake(claim *resourcev1.ResourceClaim) {
	if _, ever := c.leaves(claim); !ever {
		return
	}
	for _, r := range claim.Status.ReservedFor {
		if r.APIGroup == "" && r.Resource == "pods" {
			c.loop.Add(controller.Key{Namespace: claim.Namespace, Name: r.Name})
		}
	}
}

// leaves returns when the pods of a claim have to leave; false means never.
func (c *Controller) leaves(claim *resourcev1.ResourceClaim) (first time.Time, ever bool) {
	if claim.Status.Allocation == nil {
		return first, false
	}
	for i := range claim.Status.Allocation.Devices.Results {
		r := &claim.Status.Allocation.Devices.Results[i]
		var taints []resourcev1.DeviceTaint
		if d := device(c.pools.slicesOf(pool{r.Driver, r.Pool}), r.Device); d != nil {
			taints = slices.Clone(d.Taints)
		}
		// A rule holds for a device that its driver does not show at the moment, too.
		for _, rule := range c.rules.List() {
			if api.Taints(rule, r.Driver, r.Pool, r.Device) {
				taints = append(taints, rule.Spec.Taint)
			}
		}
		if at, evicted := decide(taints, r.Tolerations); evicted && (!ever || at.Before(first)) {
			first, ever = at, true
		}
	}
	return first, ever
}

// Reconcile evicts the pod, or comes back when a toleration runs out.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	p, ok := c.pods.Get(key)
	if !ok || !evictable(p) {
		return controller.Result{}, nil
	}
	var first time.Time
	ever := false
	for _, name := range controller.ResourceClaimsOf(p) {
		claim, ok := c.claims.Get(controller.Key{Namespace: p.Namespace, Name: name})
		if !ok || !resourceclaim.IsReservedForPod(p, claim, false) {
			continue
		}
		if at, evicted := c.leaves(claim); evicted && (!ever || at.Before(first)) {
			first, ever = at, true
		}
	}
	if !ever {
		return controller.Result{}, nil
	}
	now := c.Now()
	reasons := c.reasons(p)
	for _, r := range reasons {
		c.status.Add(controller.KeyOf(r))
	}
	if wait := first.Sub(now); wait > 0 {
		return controller.Result{RequeueAfter: wait}, nil
	}
	if err := c.evict(ctx, p, now); err != nil {
		return controller.Result{}, err
	}
	for _, r := range reasons {
		c.tally.count(r.UID)
		c.status.Add(controller.KeyOf(r))
	}
	c.deleted.Inc()
	c.latency.Observe(c.Now().Sub(first).Seconds())
	return controller.Result{}, nil
}

// reasons are the rules that make a pod leave, now or later.
func (c *Controller) reasons(p *corev1.Pod) []*resourcev1.DeviceTaintRule {
	var out []*resourcev1.DeviceTaintRule
	for _, r := range c.rules.List() {
		if r.Spec.Taint.Effect == resourcev1.DeviceTaintEffectNoExecute && c.concerned(p, r) {
			out = append(out, r)
		}
	}
	return out
}

// concerned reports whether a pod has a device that it may not keep for ever because of a rule.
func (c *Controller) concerned(p *corev1.Pod, r *resourcev1.DeviceTaintRule) bool {
	for _, name := range controller.ResourceClaimsOf(p) {
		claim, ok := c.claims.Get(controller.Key{Namespace: p.Namespace, Name: name})
		if !ok || claim.Status.Allocation == nil || !resourceclaim.IsReservedForPod(p, claim, false) {
			continue
		}
		for i := range claim.Status.Allocation.Devices.Results {
			d := &claim.Status.Allocation.Devices.Results[i]
			if _, ever := due(&r.Spec.Taint, d.Tolerations); ever && api.Taints(r, d.Driver, d.Pool, d.Device) {
				return true
			}
		}
	}
	return false
}

func (c *Controller) evict(ctx context.Context, p *corev1.Pod, now time.Time) error {
	c.Events.Eventf(p, corev1.EventTypeNormal, "DeviceTaintManagerEviction", "Marking for deletion")
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByDeviceTaintManager","message":"Device Taint manager: deleting due to NoExecute taint","lastTransitionTime":%q}]}}`,
		p.UID, now.UTC().Format(time.RFC3339))
	if _, err := c.writes.Patch(ctx, p.Namespace, p.Name, types.StrategicMergePatchType, []byte(patch),
		"status"); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("marking pod %s/%s for eviction: %w", p.Namespace, p.Name, err)
	}
	if err := c.writes.Delete(ctx, p.Namespace, p.Name, p.UID); err != nil && !apierrors.IsNotFound(err) &&
		!apierrors.IsConflict(err) {
		return fmt.Errorf("evicting pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}
