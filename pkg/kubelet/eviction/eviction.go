// Package eviction keeps the node from running out of memory, disk, inodes and processes. It observes what is left,
// lets package pressure decide what follows, frees what is unused, and ends pods, one after the other, until enough is
// left again (https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/).
package eviction

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/eviction/pressure"
	"bonsai/pkg/kubelet/runtime"
)

const (
	// period is how often the node is observed; hurry is that while an evicted pod is being ended.
	period = 10 * time.Second
	hurry  = time.Second
	// patience is how long to wait for the end of an evicted pod before another one is evicted.
	patience = 30 * time.Second
	// overdue is how long the runtime has to end a pod when memory or process numbers run out, before the kernel does:
	// the second that such a pod gets, and two for the runtime.
	overdue = 3 * time.Second
)

// Node is the node that is observed and relieved.
type Node interface {
	// Observe returns what is left of the node's resources, and which file systems the runtime uses.
	Observe(ctx context.Context) (pressure.Observations, Disks, error)
	// Reclaim returns the steps that free unused things that the signal is about, the cheapest first.
	Reclaim(signal pressure.Signal, d Disks) []func(context.Context) error
	// Use returns how much these pods use of what the signal is about. Pods whose use is unknown are left out.
	Use(ctx context.Context, pods []*corev1.Pod, signal pressure.Signal, d Disks) ([]pressure.Candidate, error)
	// Kill ends the pod's processes without the runtime, and gives their memory back.
	Kill(ctx context.Context, pod *corev1.Pod) error
}

// Disks says where the runtime keeps its files: on the file system of the kubelet's directory or on another one.
type Disks struct {
	// ImagesApart: images are on another one. LayersApart: writable layers are not on the kubelet's, but on that of the
	// images.
	ImagesApart, LayersApart bool
}

// Config is what a Manager needs. Everything is required.
type Config struct {
	Policy pressure.Policy
	Node   Node
	// Ready reports whether all pods of the node are known: before that, the wrong one might be chosen.
	Ready func() bool
	// Pods are those whose containers may run.
	Pods func() []*corev1.Pod
	// Evict ends a pod. It returns false if the pod is being ended already or has ended.
	Evict func(uid types.UID, why runtime.Ending) bool
	// Evicted receives, for each eviction, its signal and the age of the observations that led to it.
	Evicted func(signal pressure.Signal, age time.Duration)
	// Gone reports whether an evicted pod has given back all that it had: its containers have ended, and its volumes
	// are off the disk.
	Gone func(uid types.UID) bool
	// Conditions are the node's conditions, which the Manager writes. Changed is called when they have changed.
	Conditions *Conditions
	Changed    func()
	// Reclaiming reports that some of a resource is about to be freed.
	Reclaiming func(corev1.ResourceName)
	Now        func() time.Time
	Log        *slog.Logger
}

// Manager watches the node and relieves it. Only Run's goroutine uses its fields, so there is no lock.
type Manager struct {
	cfg Config

	// state is what the policy remembers between observations. leaving is the pod that was evicted last, until it is
	// gone; since is when it was evicted, and for want of what.
	state   pressure.State
	leaving *corev1.Pod
	since   time.Time
	want    pressure.Threshold
}

// New checks the configuration.
func New(cfg Config) (*Manager, error) {
	if cfg.Conditions == nil || cfg.Node == nil || cfg.Ready == nil || cfg.Pods == nil || cfg.Evict == nil ||
		cfg.Evicted == nil || cfg.Gone == nil || cfg.Changed == nil || cfg.Reclaiming == nil || cfg.Now == nil ||
		cfg.Log == nil {
		return nil, errors.New("eviction: the whole configuration is required")
	}
	return &Manager{cfg: cfg}, nil
}

// Run observes the node in periods until ctx ends.
func (m *Manager) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := m.look(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Log.Warn("pressure on the node not relieved", "err", err)
		}
		wait := period
		if m.leaving != nil {
			wait = hurry
		}
		timer.Reset(wait)
	}
}

// look observes, decides and acts once. The conditions are shown first, so that no further pods arrive. Then one
// threshold, the most urgent, is acted on: unused things are freed step by step, with a new observation after each, and
// only if that is not enough one pod is evicted. Critical pods are never evicted.
func (m *Manager) look(ctx context.Context) error {
	m.killOverdue(ctx)
	begun := m.cfg.Now()
	seen, disks, err := m.observe(ctx)
	if err != nil { // what could be observed counts all the same
		m.cfg.Log.Warn("not all of the node's means observed", "err", err)
	}
	next, d := m.cfg.Policy.Next(m.state, seen, m.cfg.Now())
	m.state = next
	m.show(d.Conditions)
	pods := m.cfg.Pods()
	if m.awaits() || len(d.Due) == 0 || !m.cfg.Ready() {
		return nil
	}
	t := d.Due[0]
	m.cfg.Log.Warn("the node runs short", "signal", t.Signal, "available", seen[t.Signal].Available, "capacity",
		seen[t.Signal].Capacity)
	m.cfg.Reclaiming(t.Signal.Resource())
	for _, free := range m.cfg.Node.Reclaim(t.Signal, disks) {
		if err := free(ctx); err != nil {
			m.cfg.Log.Warn("not all that is unused was removed", "err", err)
		}
		begun = m.cfg.Now()
		if seen, disks, err = m.cfg.Node.Observe(ctx); err == nil && m.cfg.Policy.Enough(seen) {
			return nil
		}
	}
	pods = slices.DeleteFunc(slices.Clone(pods), runtime.Critical)
	candidates, err := m.cfg.Node.Use(ctx, pods, t.Signal, disks)
	if err != nil {
		return fmt.Errorf("find out what pods use: %w", err)
	}
	// A machine that is short of something is slow. Meanwhile the kernel may have ended who took it, and the pods that
	// are left must not pay for that. The runtime may be silent, so what is seen without it counts.
	// Other thresholds do not count here: the pods were found by what they take of this one.
	if looked := m.cfg.Now(); looked.Sub(begun) > hurry {
		soon, cancel := context.WithTimeout(ctx, hurry)
		again, _, _ := m.cfg.Node.Observe(soon)
		cancel()
		if t.Relieved(again) {
			return nil
		}
		if _, ok := again[t.Signal]; ok {
			seen, begun = again, looked
		}
	}
	if err := m.evict(candidates, t, seen); err != nil {
		return err
	}
	m.cfg.Evicted(t.Signal, m.cfg.Now().Sub(begun))
	return nil
}

// observe returns what is left. It does not wait long for the runtime while a pod is being ended: on a machine without
// memory that answer may take minutes, and killOverdue has its turn before.
func (m *Manager) observe(ctx context.Context) (pressure.Observations, Disks, error) {
	if m.leaving != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, hurry)
		defer cancel()
	}
	return m.cfg.Node.Observe(ctx)
}

// show publishes the node's conditions.
func (m *Manager) show(now []corev1.NodeConditionType) {
	if m.cfg.Conditions.set(now) {
		m.cfg.Log.Info("the node's conditions of pressure changed", "conditions", now)
		m.cfg.Changed()
	}
}

// awaits reports whether the pod that was evicted last has not given back everything yet. What it frees may be enough,
// and then no other pod has to go.
func (m *Manager) awaits() bool {
	if m.leaving != nil && !m.cfg.Gone(m.leaving.UID) && m.cfg.Now().Sub(m.since) < patience {
		return true
	}
	m.leaving = nil
	return false
}

// killOverdue kills the pod that was evicted last if the runtime has not ended it in time. Without memory, what the
// runtime has to start is read from the disk again and again, and without process numbers it does not start: the pod
// would stay, and the node would stand still with it.
func (m *Manager) killOverdue(ctx context.Context) {
	if m.leaving == nil || m.cfg.Gone(m.leaving.UID) || m.cfg.Now().Sub(m.since) < overdue || !m.want.Hard() ||
		m.want.Signal.Condition() == corev1.NodeDiskPressure {
		return
	}
	if err := m.cfg.Node.Kill(ctx, m.leaving); err != nil {
		m.cfg.Log.Warn("processes of the evicted pod not killed", "uid", m.leaving.UID, "err", err)
	}
}

// evict ends the first of the ranked pods that can be ended.
func (m *Manager) evict(candidates []pressure.Candidate, t pressure.Threshold, seen pressure.Observations) error {
	for _, c := range pressure.Rank(candidates, t) {
		why := runtime.Ending{Reason: runtime.ReasonEvicted, Message: pressure.Message(c, t, seen),
			Signal: string(t.Signal), Grace: m.cfg.Policy.Grace(t, c.Pod)}
		if !m.cfg.Evict(c.Pod.UID, why) {
			continue
		}
		m.cfg.Log.Warn("pod evicted", "pod", c.Pod.Namespace+"/"+c.Pod.Name, "uid", c.Pod.UID, "signal", t.Signal,
			"why", why.Message)
		m.leaving, m.since, m.want = c.Pod, m.cfg.Now(), t
		return nil
	}
	return fmt.Errorf("no pod can be evicted to have back %s", t.Signal.Resource())
}
