// Package nodelifecycle watches the nodes' heartbeats. A node whose Lease and status fall silent is marked Unknown;
// nodes get the taints that say what is wrong with them, and the pods of nodes that are not ready lose their readiness.
// The taint that drives the pods away comes no faster than the zones' health allows (zones).
//
// Three loops share the work: one reconciles each node by itself, one marks pods that come to a node that is not ready,
// and one surveys the zones. The first decides what a node's state is, the last how fast nodes are given up. A taint
// with NoExecute is only written here; the pods are deleted by the controller tainteviction.
package nodelifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/coordination"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/podindex"
)

// leaseNamespace holds the nodes' heartbeats.
const leaseNamespace = "kube-node-lease"

// Config says how patient the controller is.
type Config struct {
	// Grace is how long a node may be silent before it is marked Unknown, Startup the same for one that has never
	// posted a status. Period is how often the zones are looked at.
	Grace, Startup, Period time.Duration
	Evictions              Evictions
}

// Controller reconciles nodes, each by itself, and looks at the zones that they make up.
//
// mu guards beats, deaf, owed and zones: handlers of events, the workers of all loops and the metrics use them. It is
// never held during a request.
type Controller struct {
	controller.Deps
	cfg    Config
	nodes  *controller.Informer[*corev1.Node]
	leases *controller.Informer[*coordinationv1.Lease]
	pods   *controller.Informer[*corev1.Pod]
	byNode podindex.ByNode

	writeNodes *apiclient.Resource[*corev1.Node]
	writePods  *apiclient.Resource[*corev1.Pod]
	loop       *controller.Loop[controller.Key]
	placed     *controller.Loop[controller.Key] // pods that were bound to a node
	surveys    *controller.Loop[struct{}]

	mu    sync.Mutex
	beats map[string]beat
	// deaf is when we last failed to ask for a lease. Silence before that is no node's fault.
	deaf time.Time
	// owed are nodes that we marked Unknown and whose pods may still be ready.
	owed    map[string]bool
	zones   *zones
	metrics *metrics
}

// beat is the last sign of life of a node: what it looked like, and when we saw that, by our own clock.
//
// Times are compared for change only, because the clocks of nodes may differ from ours.
type beat struct {
	lease, status metav1.Time
	at            time.Time
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps, cfg Config) (*Controller, error) {
	c := &Controller{
		Deps: d, cfg: cfg, beats: map[string]beat{}, owed: map[string]bool{}, zones: newZones(cfg.Evictions),
		nodes: controller.InformerFor(d.Informers, core.Nodes),
		leases: controller.FilteredInformerFor(d.Informers, coordination.Leases,
			apiclient.Selection{Namespace: leaseNamespace}),
		pods: controller.InformerFor(d.Informers, core.Pods), writeNodes: core.Nodes(d.Client),
		writePods: core.Pods(d.Client),
	}
	c.byNode, c.metrics = podindex.NewByNode(c.pods), newMetrics(c)
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "node_lifecycle_controller", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	c.placed = controller.NewLoop(
		controller.LoopConfig{Name: "node_lifecycle_controller_pods", Workers: d.Workers, Log: d.Log,
			Metrics: d.Metrics}, c.podPlaced)
	c.surveys = controller.NewLoop(controller.LoopConfig{Name: "node-lifecycle-zones", Log: d.Log, Metrics: d.Metrics},
		c.survey)
	resurvey := func(*corev1.Node) { c.surveys.Add(struct{}{}) }
	return c, errors.Join(
		controller.WatchKeys(c.loop, c.nodes),
		controller.Watch(c.surveys, c.nodes,
			controller.Handlers[*corev1.Node]{Add: resurvey, Delete: resurvey, Update: func(old, n *corev1.Node) {
				if nodeReady(old) != nodeReady(n) || zoneOf(old) != zoneOf(n) {
					resurvey(n)
				}
			}}),
		controller.Watch(c.loop, c.leases, controller.All(c.leaseSeen)),
		controller.Watch(c.placed, c.pods, controller.Handlers[*corev1.Pod]{
			Add: func(p *corev1.Pod) {
				if p.Spec.NodeName != "" {
					c.placed.Add(controller.KeyOf(p))
				}
			},
			Update: func(old, p *corev1.Pod) {
				if old.Spec.NodeName != p.Spec.NodeName {
					c.placed.Add(controller.KeyOf(p))
				}
			},
		}),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.loop.Run(ctx) })
	g.Go(func() error { return c.placed.Run(ctx) })
	g.Go(func() error { return c.surveys.Run(ctx) })
	return g.Wait()
}

// survey looks at all zones, and wakes the nodes for which that changes something. It comes back when the next node may
// be given up, which may be sooner than the period.
//
// Its loop has a single key and one worker, so surveys never overlap.
func (c *Controller) survey(context.Context, struct{}) (controller.Result, error) {
	now := c.Now()
	c.mu.Lock()
	changed, recovered := c.zones.survey(c.nodes.List(), now)
	again := c.cfg.Period
	if next := c.zones.next(now); next > 0 {
		again = min(again, next)
	}
	if recovered {
		// What kept all nodes from reporting may have lasted long; each gets a whole grace period from now.
		for name, b := range c.beats {
			b.at = now
			c.beats[name] = b
		}
	}
	c.metrics.surveyed(c.Now().Sub(now))
	c.mu.Unlock()
	for _, name := range changed {
		c.loop.Add(controller.Key{Name: name})
	}
	return controller.Result{RequeueAfter: again}, nil
}

// mayEvict reports whether a node that is not ready may have the taint that drives its pods away.
//
// A node that has the taint already keeps it, also after a restart of this controller, which knows no zones at first.
func (c *Controller) mayEvict(n *corev1.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.zones.down && (c.zones.given[n.Name] || evicting(n))
}

// leaseSeen notes a heartbeat, if it is a new one: another one, not a later one, because a node's clock may be put
// back. An old one that a late watch brings after we asked past it counts as well; the node was alive then.
//
// It wakes no node: one that is heard needs nothing, and Reconcile comes back when the next heartbeat is overdue.
func (c *Controller) leaseSeen(l *coordinationv1.Lease) {
	if l.Spec.RenewTime == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.beats[l.Name]
	renewed := metav1.NewTime(l.Spec.RenewTime.Time)
	if b.lease.Equal(&renewed) {
		return
	}
	b.lease, b.at = renewed, c.Now()
	c.beats[l.Name] = b
}

// aliveAfterAll asks the server, past the cache, whether a node that was last seen then has renewed its lease since: it
// may be our own watch that is broken, or late, so that it brings the lease while we ask. While the server gives no
// answer it will have none for the nodes either, and no node is given up.
//
// It costs one request per silent node and look, and only when the node is about to be marked.
func (c *Controller) aliveAfterAll(ctx context.Context, node string, then time.Time) (bool, error) {
	l, ok, err := c.leases.Live(ctx, controller.Key{Namespace: leaseNamespace, Name: node})
	if ok && err == nil {
		c.leaseSeen(l)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.deaf = c.Now()
		return false, fmt.Errorf("reading the lease of node %s: %w", node, err)
	}
	return c.beats[node].at.After(then), nil
}

func nodeReady(n *corev1.Node) bool {
	r := controller.NodeCondition(n, corev1.NodeReady)
	return r != nil && r.Status == corev1.ConditionTrue
}

// lastSeen returns when the node last gave a sign of life.
//
// A status that is new to us counts like a lease. The first look at a node counts as a sign of life, too: after a
// restart every node has a whole grace period.
func (c *Controller) lastSeen(n *corev1.Node, now time.Time) time.Time {
	status := n.CreationTimestamp
	if r := controller.NodeCondition(n, corev1.NodeReady); r != nil {
		status = r.LastHeartbeatTime
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b, known := c.beats[n.Name]
	if !known || b.at.IsZero() || !b.status.Equal(&status) {
		b.status, b.at = status, now
		c.beats[n.Name] = b
	}
	// Silence before that is our fault: the node's time begins when we could hear again.
	if c.deaf.After(b.at) {
		return c.deaf
	}
	return b.at
}

// grace is how long the node may be silent. A node without a Ready condition has never posted a status: its kubelet may
// still be starting.
func (c *Controller) grace(n *corev1.Node) time.Duration {
	if controller.NodeCondition(n, corev1.NodeReady) == nil {
		return c.cfg.Startup
	}
	return c.cfg.Grace
}

// Reconcile brings a node's conditions and taints in line with its heartbeats, and comes back when the next one is
// overdue. Each step relies on the one before: the taints follow from the conditions, and pods are marked only when the
// node's own conditions are stored. Each write is of what the step before it returned, so that its resourceVersion is
// current.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	cached, ok := c.nodes.Get(key)
	if !ok {
		c.mu.Lock()
		delete(c.beats, key.Name)
		delete(c.owed, key.Name)
		c.mu.Unlock()
		return controller.Result{}, nil
	}
	now := c.Now()
	defer func() { c.metrics.node.Observe(c.Now().Sub(now).Seconds()) }()
	seen, grace := c.lastSeen(cached, now), c.grace(cached)
	silentFor := now.Sub(seen)
	n := cached.DeepCopy()
	// The last check before a node is given up, and the only one that costs a request.
	if silentFor > grace && markUnknown(n, now) {
		if alive, err := c.aliveAfterAll(ctx, n.Name, seen); alive || err != nil {
			return controller.Result{RequeueAfter: grace}, err
		}
		c.Log.Info("node is silent", "node", n.Name, "for", silentFor.Round(time.Second))
		updated, err := c.writeNodes.UpdateStatus(ctx, n)
		if err != nil {
			return ignoreGone(fmt.Errorf("marking node %s unknown: %w", n.Name, err))
		}
		if nodeReady(cached) {
			c.setOwed(n.Name, true)
			c.Events.Eventf(n, corev1.EventTypeNormal, "NodeNotReady", "Node %s status is now: %s", n.Name,
				"NodeNotReady")
		}
		n = updated
	}
	if taints := taintsFor(n, c.mayEvict(n), now); !equality.Semantic.DeepEqual(n.Spec.Taints, taints) {
		n.Spec.Taints = taints
		updated, err := c.writeNodes.Update(ctx, n)
		if err != nil {
			return ignoreGone(fmt.Errorf("tainting node %s: %w", n.Name, err))
		}
		c.metrics.tainted(cached, updated)
		n = updated
	}
	// Last: pods of a node whose own state could not be written must not be touched.
	if err := c.settle(ctx, n); err != nil {
		return controller.Result{}, err
	}
	if silentFor > grace {
		// The kubelet's next status brings the node back.
		return controller.Result{}, nil
	}
	// A little late on purpose: at the exact moment the silence would still be within the grace period.
	return controller.Result{RequeueAfter: grace - silentFor + 50*time.Millisecond}, nil
}

func ignoreGone(err error) (controller.Result, error) {
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	return controller.Result{}, err
}
