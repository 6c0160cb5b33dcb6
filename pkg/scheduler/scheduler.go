package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/cache"
	"bonsai/pkg/scheduler/decide"
	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/podstatus"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/queue"
	"bonsai/pkg/scheduler/volumes"
	"bonsai/pkg/trace"
)

// Recorder publishes events about pods. It must not block.
type Recorder interface {
	Event(pod *corev1.Pod, profile, eventType, reason, action, note string)
}

// Decider chooses nodes. The answers must be those of the profile's plug-ins run over all nodes.
type Decider interface {
	// Decide returns the node for pod. The error is a *framework.FitError when none fits.
	Decide(ctx context.Context, p *profile.Profile, state *framework.CycleState, pod *model.PodInfo,
		s *model.Snapshot) (decide.Result, error)
}

// Config is what a Scheduler needs; all fields but Metrics, Tracer, Volumes and Devices are required.
type Config struct {
	Statuses  *podstatus.Writer
	Recorder  Recorder
	Profiles  map[string]*profile.Profile // by schedulerName
	Cache     *cache.Cache
	Queue     *queue.Queue
	Nominator *model.Nominator
	Decider   Decider
	// Volumes receives the changes that volumes depend on; it may be nil.
	Volumes *volumes.Volumes
	// Devices receives the changes of devices and of the claims on them; it may be nil.
	Devices *devices.Devices
	// Binders is how many pods may be in binding at once.
	Binders int
	Now     func() time.Time
	// Tracer records what is done for pods; nil: nothing is recorded.
	Tracer  *trace.Tracer
	Log     *slog.Logger
	Metrics *Metrics
}

// Scheduler schedules pods.
type Scheduler struct {
	Config
	snapshot *model.Snapshot
	slots    chan struct{}
	binding  sync.WaitGroup
}

// New checks the configuration.
func New(cfg Config) (*Scheduler, error) {
	switch {
	case cfg.Statuses == nil || cfg.Recorder == nil || cfg.Cache == nil || cfg.Queue == nil || cfg.Nominator == nil ||
		cfg.Decider == nil:
		return nil, errors.New("scheduler: Statuses, Recorder, Cache, Queue, Nominator and Decider are required")
	case len(cfg.Profiles) == 0:
		return nil, errors.New("scheduler: at least one profile is required")
	case cfg.Binders < 1:
		return nil, fmt.Errorf("scheduler: Binders must be at least 1, not %d", cfg.Binders)
	case cfg.Now == nil || cfg.Log == nil:
		return nil, errors.New("scheduler: Now and Log are required")
	}
	return &Scheduler{Config: cfg, snapshot: model.NewSnapshot(), slots: make(chan struct{}, cfg.Binders)}, nil
}

// Run schedules until ctx ends, which also ends the bindings, evictions and writes that are under way: another process
// may lead by then. It returns when they have ended.
func (s *Scheduler) Run(ctx context.Context) error {
	defer s.wait()
	for {
		pod, ok := s.Queue.Pop(ctx)
		if !ok {
			return nil
		}
		s.one(ctx, pod)
	}
}

// wait returns when nothing runs in the background any more.
func (s *Scheduler) wait() {
	s.binding.Wait()
	for _, p := range s.Profiles {
		p.Wait()
	}
	s.Statuses.Wait()
}

// profile returns the profile that is responsible for pod, nil if it is another scheduler's.
func (s *Scheduler) profile(pod *corev1.Pod) *profile.Profile {
	return s.Profiles[pod.Spec.SchedulerName]
}
