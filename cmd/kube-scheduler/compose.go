package main

import (
	"log/slog"
	"math/rand/v2"
	"time"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/scheduler"
	"bonsai/pkg/scheduler/cache"
	"bonsai/pkg/scheduler/decide"
	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/event"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/plugins/noderesources"
	"bonsai/pkg/scheduler/podstatus"
	"bonsai/pkg/scheduler/preemption"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/queue"
	"bonsai/pkg/scheduler/slim"
	"bonsai/pkg/scheduler/volumes"
	"bonsai/pkg/scheduler/write"
	"bonsai/pkg/trace"
)

// binders is how many bindings may be under way at once: enough to keep the API server busy, few enough to be polite.
const binders = 48

// writers is how many conditions and nominations of waiting pods may be written at once.
const writers = 16

// parts is what all profiles and the scheduling loop share: what writes to the API server, and what this scheduler has
// decided that the API server may not show yet.
//
// They are made before the profiles, whose plug-ins use them, and outlive every decision.
type parts struct {
	writer    *write.Writer
	recorder  *event.Recorder
	nominator *model.Nominator
	statuses  *podstatus.Writer
	volumes   *volumes.Volumes
	devices   *devices.Devices
	metrics   *scheduler.Metrics
	// tracer may be nil.
	tracer *trace.Tracer
	log    *slog.Logger
}

// newParts returns the parts of a scheduler on host, which its events name.
func newParts(c *apiclient.Client, host string, metrics *scheduler.Metrics, log *slog.Logger) *parts {
	w := write.New(c)
	return &parts{
		writer:    w,
		recorder:  event.New(w, host, time.Now, log),
		nominator: model.NewNominator(),
		statuses:  podstatus.New(w, writers, log),
		volumes:   volumes.New(w),
		devices:   devices.New(w, time.Now),
		metrics:   metrics,
		log:       log,
	}
}

// newScheduler returns the scheduler that cfg and the flags describe. It sees nothing until the world feeds it.
func newScheduler(
	o *options, cfg *configv1.KubeSchedulerConfiguration, w *world, p *parts,
) (*scheduler.Scheduler, error) {
	profiles, err := newProfiles(o, cfg, w, p)
	if err != nil {
		return nil, err
	}
	return scheduler.New(scheduler.Config{
		Statuses:  p.statuses,
		Recorder:  p.recorder,
		Profiles:  profiles,
		Cache:     cache.New(),
		Queue:     newQueue(o, cfg, profiles, p.metrics),
		Nominator: p.nominator,
		Volumes:   p.volumes,
		Devices:   p.devices,
		Decider:   decide.NewIncremental(p.nominator, rand.IntN),
		Binders:   binders,
		Now:       time.Now,
		Tracer:    p.tracer,
		Log:       p.log,
		Metrics:   p.metrics,
	})
}

// newProfiles returns the profiles by scheduler name. Each has plug-ins of its own; all share the extenders.
//
// Plug-ins may keep state, and their arguments differ, so none is shared by two profiles.
func newProfiles(
	o *options, cfg *configv1.KubeSchedulerConfiguration, w *world, p *parts,
) (map[string]*profile.Profile, error) {
	extenders, err := newExtenders(cfg, p.log)
	if err != nil {
		return nil, err
	}
	profiles := map[string]*profile.Profile{}
	for i := range cfg.Profiles {
		in := &cfg.Profiles[i]
		list, err := enabled(in, plugins.Config{
			Fit:        noderesources.Fit{Ignored: ignored(cfg.Extenders), ByDevices: p.devices.GivenByClass},
			Binder:     p.writer,
			Workloads:  w.workloads,
			Namespaces: w,
			Preemption: newPreemption(w, p),
			Volumes:    p.volumes,
			AvoidPods:  o.policyFile != "",
			Node:       w.node,
			Devices:    p.devices,
			Log:        p.log,
		})
		if err != nil {
			return nil, err
		}
		if profiles[*in.SchedulerName], err = profile.New(*in.SchedulerName, list, extenders...); err != nil {
			return nil, err
		}
	}
	return profiles, nil
}

func newPreemption(w *world, p *parts) *preemption.Plugin {
	return &preemption.Plugin{
		API:       p.writer,
		Budgets:   w.budgets,
		Statuses:  p.statuses,
		Recorder:  p.recorder,
		Nominator: p.nominator,
		Now:       time.Now,
		Log:       p.log,
		Metrics:   p.metrics,
	}
}

// newQueue returns the queue of all profiles' pods. The profiles sort it alike, so any one's order is that of all.
func newQueue(
	o *options, cfg *configv1.KubeSchedulerConfiguration, profiles map[string]*profile.Profile, m *scheduler.Metrics,
) *queue.Queue {
	return queue.New(queue.Config{
		Profile:          func(pod *model.PodInfo) *profile.Profile { return profiles[pod.Pod.Spec.SchedulerName] },
		Less:             profiles[*cfg.Profiles[0].SchedulerName].Sort.Less,
		Now:              time.Now,
		InitialBackoff:   seconds(cfg.PodInitialBackoffSeconds),
		MaxBackoff:       seconds(cfg.PodMaxBackoffSeconds),
		MaxUnschedulable: o.maxUnschedulable,
		Incoming:         m.Incoming,
	})
}

// newKeeper returns the keeper of those fields of pods and nodes that the profiles' plug-ins declare. With extenders it
// keeps whole objects: what they read is unknown.
//
// A cluster of many pods is mostly fields that no plug-in reads; leaving them out saves most of the memory.
func newKeeper(
	cfg *configv1.KubeSchedulerConfiguration, profiles map[string]*profile.Profile,
) (*slim.Keeper, error) {
	if len(cfg.Extenders) > 0 {
		return slim.Everything(), nil
	}
	var reads []framework.Fields
	for _, p := range profiles {
		for _, fields := range p.Fields {
			reads = append(reads, fields)
		}
	}
	return slim.New(reads...)
}
