// Package ttl tells kubelets by an annotation of their Node how long they may keep secrets and config maps that they do
// not watch: the more nodes there are, the longer, so that they do not ask too often together.
package ttl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
)

// boundary is a range of numbers of nodes with its seconds. The ranges overlap, so that one node that comes and goes
// changes nothing.
type boundary struct{ least, most, seconds int }

func boundaries() []boundary {
	const all = int(^uint(0) >> 1)
	return []boundary{{0, 100, 0}, {90, 500, 15}, {450, 1000, 30}, {900, 2000, 60}, {1800, 10000, 300},
		{9000, all, 600}}
}

// next is the range for a number of nodes, of one that held until now.
func next(step, nodes int) int {
	for nodes > boundaries()[step].most {
		step++
	}
	for nodes < boundaries()[step].least {
		step--
	}
	return step
}

// Controller reconciles Nodes.
type Controller struct {
	controller.Deps
	nodes  *controller.Informer[*corev1.Node]
	writes *apiclient.Resource[*corev1.Node]
	loop   *controller.Loop[controller.Key]
	// number is how many nodes there are; step the range that holds, which the workers read.
	number int
	step   atomic.Int64
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{Deps: d, nodes: controller.InformerFor(d.Informers, core.Nodes), writes: core.Nodes(d.Client)}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "ttlcontroller", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	count := controller.Handlers[*corev1.Node]{Add: func(*corev1.Node) {
		c.count(1)
	}, Delete: func(*corev1.Node) { c.count(-1) }}
	return c, errors.Join(controller.Watch(c.loop, c.nodes, count), controller.WatchKeys(c.loop, c.nodes))
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// count takes nodes that came or went, and chooses the range again. It is called from one goroutine.
func (c *Controller) count(change int) {
	c.number += change
	c.step.Store(int64(next(int(c.step.Load()), c.number)))
}

// Reconcile annotates one node. When the number of nodes leaves its range the others follow with their next status, and
// not all at once.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	n, ok := c.nodes.Get(key)
	want := strconv.Itoa(boundaries()[c.step.Load()].seconds)
	if !ok || n.Annotations[corev1.ObjectTTLAnnotationKey] == want {
		return controller.Result{}, nil
	}
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{
			"annotations": map[string]string{corev1.ObjectTTLAnnotationKey: want}}})
	if err != nil {
		return controller.Result{}, fmt.Errorf("encoding a patch: %w", err)
	}
	if _, err := c.writes.Patch(ctx, "", n.Name, types.StrategicMergePatchType, patch); err != nil &&
		!apierrors.IsNotFound(err) {
		return controller.Result{}, fmt.Errorf("annotating node %s: %w", n.Name, err)
	}
	return controller.Result{}, nil
}
