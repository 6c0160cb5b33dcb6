// Package podautoscaler keeps the size of what HorizontalPodAutoscalers are about by metrics
// (https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/). What is decided
// (observation.decide) is a pure function of one observation: the target's scale, its pods, the metrics, what was
// recommended and done before, and the time.
//
// A round reads the target's scale, selects its pods from the cache, reads every metric from its API, decides, scales
// through the subresource scale, and stores the status. Metrics are polled: a round is repeated after Config.Period.
package podautoscaler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/autoscaling"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/served"
	"bonsai/pkg/controller"
)

// Controller reconciles HorizontalPodAutoscalers.
type Controller struct {
	controller.Deps
	config      Config
	autoscalers *controller.Informer[*autoscalingv2.HorizontalPodAutoscaler]
	pods        *controller.Informer[*corev1.Pod]
	writes      *apiclient.Resource[*autoscalingv2.HorizontalPodAutoscaler]
	kinds       *served.Finder
	sources     *sources
	loop        *controller.Loop[controller.Key]
	metrics     *metrics

	mu    sync.Mutex
	known map[controller.Key]*memory
}

// memory is what is remembered of one autoscaler. Only its own reconcile uses history and wrote; selector is that of
// its target, nil until it is read.
//
// It goes when the autoscaler is deleted.
type memory struct {
	history  history
	selector labels.Selector
	// wrote is the resourceVersion of the status that was stored last, "" for none.
	wrote string
}

// behind is how soon an autoscaler is looked at again whose cache does not show its last status.
const behind = time.Second

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps, config Config) (*Controller, error) {
	kinds := served.NewFinder(served.By(d.Client), d.Now)
	c := &Controller{
		Deps: d, config: config,
		autoscalers: controller.InformerFor(d.Informers, autoscaling.HorizontalPodAutoscalers),
		pods:        controller.InformerFor(d.Informers, core.Pods),
		writes:      autoscaling.HorizontalPodAutoscalers(d.Client),
		kinds:       kinds, sources: &sources{d.Client, kinds},
		known: map[controller.Key]*memory{},
	}
	c.metrics = newMetrics(d.Metrics, func() float64 { return float64(len(c.autoscalers.Raw().GetStore().ListKeys())) })
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "horizontalpodautoscaler", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	add := func(a *autoscalingv2.HorizontalPodAutoscaler) { c.loop.Add(controller.KeyOf(a)) }
	return c, errors.Join(
		// A change of an autoscaler's status comes from this controller: only a changed spec wakes it.
		controller.Watch(c.loop, c.autoscalers,
			controller.Handlers[*autoscalingv2.HorizontalPodAutoscaler]{Add: add, Delete: add,
				Update: func(old, a *autoscalingv2.HorizontalPodAutoscaler) {
					if old.UID != a.UID || !apiequality.Semantic.DeepEqual(old.Spec, a.Spec) {
						add(a)
					}
				}}),
		// No handlers: pods wake nothing, but the loop must not begin before their cache is filled.
		controller.Watch(c.loop, c.pods, controller.Handlers[*corev1.Pod]{}),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile looks at one autoscaler and comes back after the period, whatever the result: no watch reports that a
// metric changes.
//
// It does nothing while the cache is behind its own last status (KEP-5647): that says whether the target was scaled to
// zero, and a size of zero that somebody else set must not be taken for its own.
//
// It returns no error: with one the loop would come back after its own back-off, first after milliseconds, and each
// round costs several requests. Events are recorded before the status is stored, because they tell what the round did
// even if the status is a conflict.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	a, ok := c.autoscalers.Get(key)
	if !ok {
		c.forget(key)
		return controller.Result{}, nil
	}
	m := c.memoryOf(key)
	if order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, m.wrote); err == nil && order < 0 {
		return controller.Result{RequeueAfter: min(behind, c.config.Period)}, nil
	}
	start := c.Now()
	p := c.observe(ctx, a, m)
	for _, e := range p.says {
		c.Events.Event(a, e.kind, e.reason, e.message)
	}
	err := c.store(ctx, a, &p.status, m)
	c.metrics.reconciled(&p, c.Now().Sub(start))
	if err == nil {
		c.metrics.wants(key, p.status.DesiredReplicas)
	}
	if err = errors.Join(p.failed, err); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
		c.Log.Warn("cannot autoscale", "key", key, "err", err)
	}
	return controller.Result{RequeueAfter: c.config.Period}, nil
}

// observe finds out what there is to know, decides, and scales. Pods and metrics are read only where the decision needs
// them: a size out of range is corrected without. Requests go one after the other, without a lock.
func (c *Controller) observe(ctx context.Context, a *autoscalingv2.HorizontalPodAutoscaler, m *memory) plan {
	key, now := controller.KeyOf(a), c.Now()
	t, err := find(ctx, c.Client, c.kinds, a)
	if err != nil {
		var spec errSpec
		return unreachable(a, err, errors.As(err, &spec), now)
	}
	o := &observation{autoscaler: a, wanted: t.scale.Spec.Replicas, present: t.scale.Status.Replicas,
		history: &m.history, now: now, config: c.config}
	if _, _, done := o.outOfRange(); !done {
		var selector labels.Selector
		if selector, o.selection = c.selected(m, t.scale.Status.Selector); o.selection == nil {
			o.pods = c.matching(a.Namespace, selector)
			o.selection = c.alone(key, o.pods, t.scale.Status.Selector)
		}
		if o.selection == nil {
			for i := range a.Spec.Metrics {
				began := c.Now()
				o.readings = append(o.readings,
					c.sources.read(ctx, a.Namespace, t.scale.Status.Selector, &a.Spec.Metrics[i]))
				o.readings[i].took = c.Now().Sub(began)
			}
		}
	}
	p := o.decide()
	if !p.scale {
		return p
	}
	if err := t.resize(ctx, p.replicas); err != nil {
		p.notRescaled(a, err, now)
		return p
	}
	// Only a change that was carried out counts against the rates.
	m.history.changed(p.replicas-o.wanted, now, a.Spec.Behavior)
	m.history.zeroed = p.replicas == 0
	p.rescaled(now)
	c.Log.Info("rescaled", "key", key, "from", o.wanted, "to", p.replicas, "reason", p.reason)
	return p
}

// selected parses the selector of the target, and remembers it, so that the rounds of other autoscalers can see whether
// they share pods with this one (alone).
func (c *Controller) selected(m *memory, text string) (labels.Selector, *failure) {
	if text == "" {
		err := errors.New("selector is required")
		return nil, &failure{reason: "InvalidSelector", event: "SelectorRequired", said: err.Error(),
			condition: "the HPA target's scale is missing a selector", err: err, spec: true}
	}
	s, err := labels.Parse(text)
	if err != nil {
		err = fmt.Errorf("couldn't convert selector into a corresponding internal selector object: %w", err)
		return nil, &failure{reason: "InvalidSelector", said: err.Error(), condition: err.Error(), err: err, spec: true}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.selector = s
	return s, nil
}

// matching selects pods from the cache. It walks the pods of the namespace once for each round.
func (c *Controller) matching(namespace string, s labels.Selector) []*corev1.Pod {
	return slices.DeleteFunc(c.pods.InNamespace(namespace), func(p *corev1.Pod) bool {
		return !s.Matches(labels.Set(p.Labels))
	})
}

// alone returns a failure if another autoscaler of the namespace selects some of these pods: the two would undo each
// other's work. It knows only selectors that were read since the process started, so the first rounds may miss one. The
// cost is the number of autoscalers times that of the pods.
func (c *Controller) alone(key controller.Key, pods []*corev1.Pod, selector string) *failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	var others []string
	for k, m := range c.known {
		if k != key && k.Namespace == key.Namespace && m.selector != nil &&
			slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return m.selector.Matches(labels.Set(p.Labels)) }) {
			others = append(others, k.String())
		}
	}
	if len(others) == 0 {
		return nil
	}
	two := []string{key.String(), slices.Min(others)}
	slices.Sort(two)
	err := fmt.Errorf("pods by selector %s are controlled by more than one HPA (e.g. %v)", selector, two)
	return &failure{reason: "AmbiguousSelector", said: err.Error(), condition: err.Error(), err: err}
}

// memoryOf returns the memory of an autoscaler, a new one if there is none. The pointer is shared by all of its rounds;
// only selector is read by others, under mu.
func (c *Controller) memoryOf(key controller.Key) *memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.known[key]
	if m == nil {
		m = &memory{}
		c.known[key] = m
	}
	return m
}

func (c *Controller) forget(key controller.Key) {
	c.mu.Lock()
	delete(c.known, key)
	c.mu.Unlock()
	c.metrics.gone(key)
}

// store writes the status if it is news.
//
// A conflict is no loss: the next period writes again.
func (c *Controller) store(ctx context.Context, a *autoscalingv2.HorizontalPodAutoscaler,
	status *autoscalingv2.HorizontalPodAutoscalerStatus, m *memory) error {
	if apiequality.Semantic.DeepEqual(&a.Status, status) {
		return nil
	}
	a = a.DeepCopy()
	a.Status = *status
	stored, err := c.writes.UpdateStatus(ctx, a)
	if err != nil {
		return fmt.Errorf("updating the status of HorizontalPodAutoscaler %s/%s: %w", a.Namespace, a.Name, err)
	}
	m.wrote = stored.ResourceVersion
	return nil
}
