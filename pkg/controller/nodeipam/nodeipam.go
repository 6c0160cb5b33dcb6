// Package nodeipam gives each node a pod CIDR of its own out of the cluster CIDR, one per address family.
package nodeipam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
)

// Config says what is divided.
type Config struct {
	// ClusterCIDRs has one range per family, the primary one first.
	ClusterCIDRs []netip.Prefix
	// MaskSizes has the size of a node's range for each of them.
	MaskSizes []int
	// ServiceCIDRs are left out.
	ServiceCIDRs []netip.Prefix
}

// Controller reconciles nodes.
type Controller struct {
	controller.Deps
	nodes  *controller.Informer[*corev1.Node]
	writes *apiclient.Resource[*corev1.Node]
	loop   *controller.Loop[controller.Key]

	mu    sync.Mutex
	sets  []*cidrSet
	taken map[string][]netip.Prefix // by node
	ready bool                      // every node that existed at the start has been taken in
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps, cfg Config) (*Controller, error) {
	c := &Controller{Deps: d, nodes: controller.InformerFor(d.Informers, core.Nodes), writes: core.Nodes(d.Client),
		taken: map[string][]netip.Prefix{}}
	m := newMetrics(c)
	for i, base := range cfg.ClusterCIDRs {
		s, err := newSet(base, cfg.MaskSizes[i], m.tries.WithLabelValues(base.Masked().String()))
		if err != nil {
			return nil, err
		}
		for _, service := range cfg.ServiceCIDRs {
			s.mark(service, true)
		}
		c.sets = append(c.sets, s)
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "cidrallocator_node", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	return c, controller.WatchKeys(c.loop, c.nodes)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile gives a node its CIDRs, or takes back those of one that is gone.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	c.occupyAll()
	n, ok := c.nodes.Get(key)
	if !ok {
		c.release(key.Name)
		return controller.Result{}, nil
	}
	if len(n.Spec.PodCIDRs) > 0 || n.Spec.PodCIDR != "" {
		c.occupy(n)
		return controller.Result{}, nil
	}
	cidrs, err := c.allocate(key.Name)
	if err != nil {
		c.Events.Eventf(n, corev1.EventTypeNormal, "CIDRNotAvailable", "Node %s status is now: %s", n.Name,
			"CIDRNotAvailable")
		return controller.Result{}, err
	}
	return controller.Result{}, c.assign(ctx, n, cidrs)
}

// occupyAll takes in, once, all CIDRs that nodes have already, before the first one is given out: none is given twice
// after a restart.
func (c *Controller) occupyAll() {
	c.mu.Lock()
	done := c.ready
	c.ready = true
	if !done {
		for _, n := range c.nodes.List() {
			c.occupyLocked(n)
		}
	}
	c.mu.Unlock()
}

func (c *Controller) occupy(n *corev1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.occupyLocked(n)
}

func (c *Controller) occupyLocked(n *corev1.Node) {
	cidrs := n.Spec.PodCIDRs
	if len(cidrs) == 0 && n.Spec.PodCIDR != "" {
		cidrs = []string{n.Spec.PodCIDR}
	}
	var list []netip.Prefix
	for _, text := range cidrs {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			c.Log.Error("node has a broken pod CIDR", "node", n.Name, "cidr", text, "err", err)
			continue
		}
		list = append(list, p)
		for _, s := range c.sets {
			s.mark(p, true)
		}
	}
	if len(list) > 0 {
		c.taken[n.Name] = list
	}
}

func (c *Controller) release(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.taken[name] {
		for _, s := range c.sets {
			s.mark(p, false)
		}
	}
	delete(c.taken, name)
}

// allocate returns the CIDRs for a node; those of an earlier try, whose write may have failed, again.
func (c *Controller) allocate(name string) ([]netip.Prefix, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if had := c.taken[name]; had != nil {
		return had, nil
	}
	var out []netip.Prefix
	for _, s := range c.sets {
		p, err := s.allocate()
		if err != nil {
			for i, q := range out {
				c.sets[i].mark(q, false)
			}
			return nil, fmt.Errorf("giving node %s a pod CIDR of %s: %w", name, s.base, err)
		}
		out = append(out, p)
	}
	c.taken[name] = out
	return out, nil
}

func (c *Controller) assign(ctx context.Context, n *corev1.Node, cidrs []netip.Prefix) error {
	texts := make([]string, len(cidrs))
	for i, p := range cidrs {
		texts[i] = p.String()
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": n.UID}, "spec": map[string]any{"podCIDR": texts[0], "podCIDRs": texts},
	})
	if err != nil {
		return fmt.Errorf("encoding the pod CIDRs of node %s: %w", n.Name, err)
	}
	_, err = c.writes.Patch(ctx, "", n.Name, types.StrategicMergePatchType, patch)
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsInvalid(err):
		// Somebody else gave it one meanwhile; take in what it is when the watch shows it.
		c.release(n.Name)
		return errors.Join(fmt.Errorf("setting the pod CIDRs of node %s", n.Name), err)
	}
	return fmt.Errorf("setting the pod CIDRs of node %s: %w", n.Name, err)
}
