// Package resourcequota keeps the status of resource quotas: what they allow, and how much of it is used, by counting
// again whenever a quota changes, something counted goes, and now and then. Admission charges the same status for what
// comes.
//
// Admission writes the status before it stores the object. A count that lowers what is used must not be written by that
// gap: it waits until the last charge is old enough to be among the objects counted, and is void if another one comes.
package resourcequota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"bonsai/api/quota"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	resourceapi "bonsai/pkg/apiclient/resource"
	"bonsai/pkg/apiclient/served"
	"bonsai/pkg/controller"
)

const (
	// settling is how long after a charge its object may still be on its way into our caches, also on a busy machine.
	settling = 500 * time.Millisecond
	// healing is how long after a charge, or after an object came, is looked whether both fit: an object may have been
	// refused after it was charged, or may have come before the quota's first status.
	healing = 5 * time.Second
)

// Controller is the quota controller.
type Controller struct {
	controller.Deps
	period   time.Duration
	quotas   *controller.Informer[*corev1.ResourceQuota]
	pods     *controller.Informer[*corev1.Pod]
	services *controller.Informer[*corev1.Service]
	claims   *controller.Informer[*corev1.PersistentVolumeClaim]
	devices  *controller.Informer[*resourcev1.ResourceClaim]
	classes  *controller.Informer[*resourcev1.DeviceClass]
	writes   *apiclient.Resource[*corev1.ResourceQuota]
	loop     *controller.Loop[controller.Key]
	counters *counters

	mu      sync.Mutex
	written map[controller.Key]time.Time // when a quota's newest version was first seen
}

// New returns the controller; every quota is counted again after period at the latest.
func New(d controller.Deps, period time.Duration) (*Controller, error) {
	m, err := served.Metadata(d.Client)
	if err != nil {
		return nil, err
	}
	c := &Controller{
		Deps: d, period: period, writes: core.ResourceQuotas(d.Client), written: map[controller.Key]time.Time{},
		quotas:   controller.InformerFor(d.Informers, core.ResourceQuotas),
		pods:     controller.InformerFor(d.Informers, core.Pods),
		services: controller.InformerFor(d.Informers, core.Services),
		claims:   controller.InformerFor(d.Informers, core.PersistentVolumeClaims),
		devices:  controller.InformerFor(d.Informers, resourceapi.ResourceClaims),
		classes:  controller.InformerFor(d.Informers, resourceapi.DeviceClasses),
	}
	c.counters = newCounters(d, m, c.changed)
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "resourcequota_primary", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	return c, errors.Join(c.watchQuotas(), watchCounted(c, c.pods, corev1.Resource("pods")),
		watchCounted(c, c.services, corev1.Resource("services")),
		watchCounted(c, c.claims, corev1.Resource("persistentvolumeclaims")),
		watchCounted(c, c.devices, resourcev1.Resource("resourceclaims")),
		controller.Watch(c.loop, c.classes, controller.Handlers[*resourcev1.DeviceClass]{
			Add: c.classChanged, Delete: c.classChanged, Update: func(old, class *resourcev1.DeviceClass) {
				if ptr.Deref(old.Spec.ExtendedResourceName, "") != ptr.Deref(class.Spec.ExtendedResourceName, "") {
					c.classChanged(class)
				}
			},
		}))
}

// Run counts until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer c.counters.watches.Wait()
	defer cancel()
	return c.loop.Run(ctx)
}

func (c *Controller) watchQuotas() error {
	return controller.Watch(c.loop, c.quotas, controller.Handlers[*corev1.ResourceQuota]{
		Add: func(q *corev1.ResourceQuota) {
			c.sighted(q)
			c.loop.Add(controller.KeyOf(q))
		},
		Update: func(old, q *corev1.ResourceQuota) {
			c.sighted(q)
			if !apiequality.Semantic.DeepEqual(old.Spec, q.Spec) {
				c.counters.keep(c.quotas.List())
				c.loop.Add(controller.KeyOf(q))
			} else if !apiequality.Semantic.DeepEqual(old.Status, q.Status) {
				c.loop.AddAfter(controller.KeyOf(q), healing)
			}
		},
		Delete: func(q *corev1.ResourceQuota) {
			c.mu.Lock()
			delete(c.written, controller.KeyOf(q))
			c.mu.Unlock()
			c.counters.keep(c.quotas.List())
		},
	})
}

// watchCounted watches a kind whose objects count for more than their number: their requests or sizes count too.
func watchCounted[T apiclient.Object](c *Controller, i *controller.Informer[T], gr schema.GroupResource) error {
	return controller.Watch(c.loop, i, controller.Handlers[T]{
		Add: func(o T) { c.changed(o.GetNamespace(), gr, healing) },
		Update: func(old, o T) {
			if len(c.quotas.InNamespace(o.GetNamespace())) == 0 {
				return
			}
			now := c.Now()
			if known := c.known(); !quota.Equal(quota.Usage(gr, old, now, known), quota.Usage(gr, o, now, known)) ||
				c.rescoped(gr, old, o) {
				c.changed(o.GetNamespace(), gr, 0)
			}
		},
		Delete: func(o T) { c.changed(o.GetNamespace(), gr, 0) },
	})
}

// known is what counts depend on beside the objects, as the caches have it.
func (c *Controller) known() quota.Known {
	return quota.Known{
		Extended: func(name string) string {
			if class, ok := c.classes.Get(controller.Key{Name: name}); ok {
				return ptr.Deref(class.Spec.ExtendedResourceName, "")
			}
			return ""
		},
		Pod: func(namespace, name string) *corev1.Pod {
			p, _ := c.pods.Get(controller.Key{Namespace: namespace, Name: name})
			return p
		},
	}
}

// classChanged has all quotas counted again that bound extended resources.
func (c *Controller) classChanged(*resourcev1.DeviceClass) {
	for _, q := range c.quotas.List() {
		if len(counted(q)[resourcev1.Resource("resourceclaims")]) > 0 {
			c.loop.Add(controller.KeyOf(q))
		}
	}
}

// rescoped reports whether an update moved the object from one quota to another.
func (c *Controller) rescoped(gr schema.GroupResource, old, o runtime.Object) bool {
	m, ok := o.(apiclient.Object)
	if !ok {
		return false
	}
	for _, q := range c.quotas.InNamespace(m.GetNamespace()) {
		if quota.InScope(&q.Spec, gr, old) != quota.InScope(&q.Spec, gr, o) {
			return true
		}
	}
	return false
}

// changed asks for a new count, after a while, by the quotas of ns that count objects of gr.
func (c *Controller) changed(ns string, gr schema.GroupResource, after time.Duration) {
	for _, q := range c.quotas.InNamespace(ns) {
		if len(quota.Matching(gr, q.Spec.Hard)) > 0 {
			c.loop.AddAfter(controller.KeyOf(q), after)
		}
	}
}

// Reconcile counts what one quota bounds.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	q, ok := c.quotas.Get(key)
	if !ok {
		return controller.Result{}, nil
	}
	used, wait, err := c.count(ctx, q)
	if err != nil || wait {
		return controller.Result{Backoff: wait}, err
	}
	again := controller.Result{RequeueAfter: c.period}
	if quota.Equal(used, q.Status.Used) && quota.Equal(q.Spec.Hard, q.Status.Hard) {
		return again, nil
	}
	if left := c.unsettled(key); left > 0 && lowers(used, q.Status.Used) {
		return controller.Result{RequeueAfter: left}, nil
	}
	now := q.DeepCopy()
	now.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard.DeepCopy(), Used: used}
	if _, err := c.writes.UpdateStatus(ctx, now); err != nil && !apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("writing the status of quota %s: %w", key, err)
	}
	return again, nil
}

// lowers reports whether a count gives something back.
func lowers(count, used corev1.ResourceList) bool {
	for name, q := range used {
		if n, ok := count[name]; ok && n.Cmp(q) < 0 {
			return true
		}
	}
	return false
}

// sighted notes when a version of q came.
func (c *Controller) sighted(q *corev1.ResourceQuota) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written[controller.KeyOf(q)] = c.Now()
}

// unsettled returns how long to wait until what the quota was last charged for must be in our caches.
func (c *Controller) unsettled(key controller.Key) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return settling - c.Now().Sub(c.written[key])
}
