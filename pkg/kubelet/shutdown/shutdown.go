// Package shutdown ends the node's pods in order before the machine goes down: it delays systemd's logind, by an
// inhibitor, for as long as they need
// (https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#graceful-node-shutdown). Pure functions
// decide which pods get how long (periods.go); logind is behind an interface (logind.go).
package shutdown

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Lock holds the shutdown up until it is released.
type Lock interface{ Release() error }

// Machine is the machine's shutdown.
type Machine interface {
	// Delay is how long it lets itself be held up.
	Delay(ctx context.Context) (time.Duration, error)
	// Extend has it let itself be held up that long.
	Extend(ctx context.Context, to time.Duration) error
	Inhibit(ctx context.Context) (Lock, error)
	// Watch sends true when the shutdown is about to begin, and false when it was called off; the channel is closed
	// when no more can come.
	Watch(ctx context.Context) (<-chan bool, error)
}

// Config is what a Manager needs. Everything is required, but nothing is done without Periods.
type Config struct {
	Periods []Period
	// Connect finds the machine's manager. It is called again, after a pause, when the connection is lost.
	Connect func(ctx context.Context) (Machine, func() error, error)
	// Pods are those whose containers may run.
	Pods func() []*corev1.Pod
	// End ends a pod.
	End func(uid types.UID, why runtime.Ending) bool
	// State is what the node knows of its shutdown, which the Manager writes. Changed is called when it has changed.
	State   *State
	Changed func()
	// Began and Over take the times of a shutdown.
	Began, Over func(time.Time)
	Log         *slog.Logger
}

// Manager waits for the machine's shutdown.
type Manager struct {
	cfg Config
}

// New checks the configuration.
func New(cfg Config) (*Manager, error) {
	if cfg.State == nil || cfg.Connect == nil || cfg.Pods == nil || cfg.End == nil || cfg.Changed == nil ||
		cfg.Began == nil || cfg.Over == nil || cfg.Log == nil {
		return nil, errors.New("shutdown: the whole configuration is required")
	}
	return &Manager{cfg: cfg}, nil
}

// reconnect is the pause before the machine is asked again.
const reconnect = time.Second

// Run watches until ctx ends. Without periods it does nothing.
func (m *Manager) Run(ctx context.Context) error {
	if longest(m.cfg.Periods) == 0 {
		<-ctx.Done()
		return nil
	}
	for {
		if err := m.watch(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Log.Warn("the machine's shutdown is not watched, pods would be ended by it without notice", "err",
				err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reconnect):
		}
	}
}

// watch holds the shutdown up and follows it, until the connection is lost.
func (m *Manager) watch(ctx context.Context) (err error) {
	machine, closed, err := m.cfg.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closed()) }()
	if err := m.demand(ctx, machine); err != nil {
		return err
	}
	coming, err := machine.Watch(ctx)
	if err != nil {
		return err
	}
	lock, err := machine.Inhibit(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if lock != nil {
			err = errors.Join(err, lock.Release())
		}
	}()
	// A machine that is shutting down grants no inhibitor: so this shutdown was called off while no watch was open.
	if m.cfg.State.down.CompareAndSwap(true, false) {
		m.cfg.Changed()
	}
	for down := range coming {
		m.cfg.State.down.Store(down)
		m.cfg.Changed()
		switch {
		case down && lock != nil:
			m.endAll(ctx)
			if err := lock.Release(); err != nil {
				return err
			}
			lock = nil
		case !down && lock == nil:
			if lock, err = machine.Inhibit(ctx); err != nil {
				return err
			}
		}
	}
	return errors.New("the connection to the machine's manager was lost")
}

// demand has the machine wait as long as the longest way through the periods takes.
func (m *Manager) demand(ctx context.Context, machine Machine) error {
	need := longest(m.cfg.Periods)
	has, err := machine.Delay(ctx)
	if err != nil || has >= need {
		return err
	}
	if err := machine.Extend(ctx, need); err != nil {
		return err
	}
	if has, err = machine.Delay(ctx); err == nil && has < need {
		return fmt.Errorf("the machine lets its shutdown be held up for %s, not for %s", has, need)
	}
	return err
}

// endAll ends the pods, group after group, each when the one before has ended or used up its time.
func (m *Manager) endAll(ctx context.Context) {
	m.cfg.Log.Info("the node is shutting down, its pods are ended")
	m.cfg.Began(time.Now())
	for _, g := range groupPods(m.cfg.Periods, m.cfg.Pods()) {
		for _, pod := range g.Pods {
			m.cfg.End(pod.UID, runtime.Ending{Reason: reasonTerminated, Message: messageTerminated,
				Grace: graceOf(g.Period, pod)})
		}
		m.await(ctx, g)
	}
	m.cfg.Over(time.Now())
}

// look is how often it is looked whether pods have ended.
const look = 100 * time.Millisecond

func (m *Manager) await(ctx context.Context, g group) {
	tick, over := time.NewTicker(look), time.NewTimer(g.Grace)
	defer tick.Stop()
	defer over.Stop()
	for anyOf(g.Pods, m.cfg.Pods()) {
		select {
		case <-ctx.Done():
			return
		case <-over.C:
			m.cfg.Log.Warn("pods did not end in their time", "priority", g.Priority, "after", g.Grace)
			return
		case <-tick.C:
		}
	}
}

func anyOf(pods, active []*corev1.Pod) bool {
	there := map[types.UID]bool{}
	for _, p := range active {
		there[p.UID] = true
	}
	for _, p := range pods {
		if there[p.UID] {
			return true
		}
	}
	return false
}
