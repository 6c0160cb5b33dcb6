package main

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/scheduler"
	"bonsai/pkg/scheduler/slim"
	"bonsai/pkg/scheduler/workloads"
)

// informer lists, watches and keeps the objects of one kind.
type informer interface {
	// Run follows until ctx ends.
	Run(ctx context.Context)
	// Synced reports whether all objects that were there at the start have been handled.
	Synced() bool
}

// all selects every object of a kind.
func all() apiclient.Selection { return apiclient.Selection{} }

// world follows everything on the API server that decisions depend on.
type world struct {
	pods       *apiclient.Informer[*corev1.Pod]
	nodes      *apiclient.Informer[*corev1.Node]
	namespaces *apiclient.Informer[*corev1.Namespace]
	owners     *ownerInformers
	storage    *storageInformers
	devices    *deviceInformers
	budgets    *budgets
	workloads  *workloads.Workloads
	// epoch counts the changes of namespaces' labels.
	epoch atomic.Int64
}

// newWorld returns a world that sees nothing until run, and reports nothing until feed.
func newWorld(c *apiclient.Client, log *slog.Logger) *world {
	unfinished := apiclient.Selection{Fields: "status.phase!=Succeeded,status.phase!=Failed"}
	w := &world{
		pods:       apiclient.NewInformer(core.Pods(c), unfinished, log),
		nodes:      apiclient.NewInformer(core.Nodes(c), all(), log),
		namespaces: apiclient.NewInformer(core.Namespaces(c), all(), log),
		owners:     newOwnerInformers(c, log),
		storage:    newStorageInformers(c, log),
		devices:    newDeviceInformers(c, log),
		budgets:    newBudgets(c, log),
	}
	w.namespaces.Slim = func(n *corev1.Namespace) { *n = corev1.Namespace{ObjectMeta: slimMeta(n.ObjectMeta)} }
	w.workloads = workloads.New(w.owners.selector)
	w.owners.services.Changed = w.workloads.ServiceChanged
	return w
}

// slimMeta keeps a name, its identity and its labels.
func slimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels,
	}
}

// feed makes the informers report changes to s. They store of pods and nodes only the fields that keep names.
func (w *world) feed(s *scheduler.Scheduler, keep *slim.Keeper) {
	w.pods.Slim, w.nodes.Slim = keep.Pod, keep.Node
	w.pods.Changed = s.PodChanged
	w.nodes.Changed = s.NodeChanged
	w.namespaces.Changed = func(old, ns *corev1.Namespace) {
		if old != nil && ns != nil && maps.Equal(old.Labels, ns.Labels) {
			return
		}
		w.epoch.Add(1)
		s.NamespaceChanged()
	}
	w.storage.feed(s)
	w.devices.feed(s)
}

// informers returns all informers.
func (w *world) informers() []informer {
	return slices.Concat(
		[]informer{w.pods, w.nodes, w.namespaces, w.budgets.informer},
		w.owners.all(), w.storage.all(), w.devices.all(),
	)
}

// node returns the node of that name, nil if there is none.
func (w *world) node(name string) *corev1.Node {
	n, _ := w.nodes.Get(name)
	return n
}

// run follows until ctx ends.
func (w *world) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, r := range w.informers() {
		all.Go(func() { r.Run(ctx) })
	}
	all.Wait()
}

// synced is true once all that is there has been seen.
func (w *world) synced() bool {
	for _, r := range w.informers() {
		if !r.Synced() {
			return false
		}
	}
	return true
}

// wait blocks until synced; false says that ctx ended before.
func (w *world) wait(ctx context.Context) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !w.synced() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// NamespaceLabels returns a namespace's labels.
func (w *world) NamespaceLabels(name string) labels.Set {
	if ns, ok := w.namespaces.Get(name); ok {
		return ns.Labels
	}
	return nil
}

// Epoch changes with the labels of any namespace.
func (w *world) Epoch() int64 { return w.epoch.Load() }
