package kubelet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"bonsai/pkg/kubelet/housekeeping"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/oom"
	"bonsai/pkg/kubelet/pluginmanager"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/syncloop"
)

// runner is one of the kubelet's loops. It works until its context ends; an error ends the kubelet. run must return
// soon after its context ends, because runAll waits for all of them.
type runner struct {
	name string
	run  func(context.Context) error
}

// newRunners lists all loops in the order in which they start: first what reports, then what pods need, the workers,
// the node, and last what brings pods, cleans up after them and ends them. They start without waiting for each other;
// where a loop needs another one's state, it waits for that state (Ready, Synced, Registered).
func newRunners(cfg *Config, r reporting, s signals, c *containers, n *nodeParts, v *volumeParts,
	p *podParts) []runner {
	// The directory is upstream's: drivers put their registration sockets there.
	plugins := &pluginmanager.Manager{Dir: filepath.Join(cfg.RootDir, "plugins_registry"), Log: cfg.Log,
		Handlers: map[string]pluginmanager.Handler{
			registerapi.CSIPlugin: v.drivers, registerapi.DevicePlugin: n.devices, registerapi.DRAPlugin: n.dra}}
	rotator := &logs.Rotator{MaxSize: cfg.LogMaxSize, MaxFiles: cfg.LogMaxFiles, Interval: cfg.LogPeriod,
		Runtime: c.cri, Files: cfg.Logs,
		Now: time.Now, Log: cfg.Log}
	rounds := housekeepingRounds(cfg, r, s, c, n, v, p.sources)
	return []runner{
		{"status writer", r.status.Run},
		{"objects", func(ctx context.Context) error { return v.objects.Run(ctx, v.changed(s)) }},
		{"certificates of pods", func(ctx context.Context) error { return v.certificates.Run(ctx, v.changed(s)) }},
		{"volumes", v.manager.Run},
		{"plug-ins", plugins.Run},
		{"device plug-ins", n.devices.Run},
		{"DRA drivers", n.dra.Run},
		{"CPU manager", n.cpu.Run},
		{"pod-resources API", n.served.Run},
		{"pods API", n.pods.Run},
		{"CSINode", func(ctx context.Context) error { return v.csiNode.Run(ctx, n.node.Registered()) }},
		{"services", p.services.Run},
		{"runtime classes", p.classes.Run},
		// Before the sources, which hand pods to them.
		{"pod workers", func(ctx context.Context) error { return s.workers.Run(ctx, p.syncer) }},
		{"node", n.node.Run},
		{"sources of pods", p.sources.Run},
		{"mirror pods", func(ctx context.Context) error { return s.pods.Run(ctx, n.node, p.sources.Synced) }},
		{"relist", func(ctx context.Context) error { return c.relist.Run(ctx, relisted{s.changed, p.sources}) }},
		{"housekeeping", func(ctx context.Context) error { return housekeeping.Run(ctx, rounds, cfg.Log) }},
		{"storage limits", p.storage.Run},
		{"eviction", p.eviction.Run},
		{"shutdown", p.shutdown.Run},
		{"kernel's log", func(ctx context.Context) error { return watchKernel(ctx, cfg, r) }},
		{"rotation of logs", rotator.Run},
	}
}

// watchKernel reports the processes that the kernel killed because the node had no memory left. A node that may not
// read the kernel's log works without.
func watchKernel(ctx context.Context, cfg *Config, r reporting) error {
	err := oom.Watch(ctx, oom.Log, func(v oom.Victim) {
		r.events.Node(corev1.EventTypeWarning, "SystemOOM",
			fmt.Sprintf("System OOM encountered, victim process: %s, pid: %d", v.Process, v.PID))
	})
	if err != nil {
		cfg.Log.Warn("kills of processes for lack of memory are not reported", "err", err)
	}
	return nil
}

// runAll starts the runners in order and returns when all have ended: after ctx has, or after one of them failed, which
// ends the others. The error names the one that failed first. The end of ctx is no error.
func runAll(ctx context.Context, all []runner) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, r := range all {
		// An error after the end of ctx is only a consequence of the end, and not reported.
		wg.Go(func() {
			if err := r.run(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", r.name, err))
			}
		})
	}
	<-ctx.Done()
	wg.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// relisted passes on what the runtime's events and lists show: a change wakes the pod's worker, a whole list lets the
// loop find pods that no source has named.
type relisted struct {
	changed func(types.UID)
	sources *syncloop.Loop
}

// Changed implements pleg.Handler.
func (r relisted) Changed(uid types.UID) { r.changed(uid) }

// Listed implements pleg.Handler.
func (r relisted) Listed(pods []*runtime.PodStatus) { r.sources.Listed(pods) }
