package kubelet

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/events"
	"bonsai/pkg/kubelet/housekeeping"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/syncloop"
)

// How often housekeeping cleans up, as upstream does. Thirty seconds bound how long a deleted pod's directory stays;
// image collection reads the disk's state and is expensive when it removes anything.
const (
	cleanPeriod = 30 * time.Second
	imagePeriod = 5 * time.Minute
)

// housekeepingRounds lists what is cleaned up, in order: containers before the directories and cgroups that they use.
// What pods left is removed only when all sources have named their pods (Ready), and while no worker has the pod
// (WhenGone, WhenFinished). Otherwise the directory of a pod that was not named yet would be removed. Rounds run on a
// goroutine of their own each, the tasks of one round one after the other. A task that fails is logged and does not
// keep the next ones from running.
func housekeepingRounds(cfg *Config, r reporting, s signals, c *containers, n *nodeParts,
	v *volumeParts, sources *syncloop.Loop) []housekeeping.Round {
	return []housekeeping.Round{
		{Every: cleanPeriod, Ready: sources.Synced, Tasks: []housekeeping.Task{
			{What: "dead containers", Do: c.dead.Clean},
			// WhenGone holds new workers of the pod back while its directory is removed.
			{What: "directories of pods", Do: func(ctx context.Context) error {
				return v.manager.Cleanup(ctx, s.workers.WhenGone)
			}},
			{What: "staged volumes", Do: v.csi.Clean},
			// A pod that has finished needs no devices or CPUs any more, even while its object exists.
			{What: "resources of pods", Do: func(ctx context.Context) error {
				return n.resources.Reconcile(ctx, s.workers.WhenFinished)
			}},
			{What: "logs of pods", Do: func(context.Context) error { return cfg.Logs.Clean(s.workers.WhenGone) }},
			// The shares of the burstable class are the sum over its pods, so they change whenever a pod comes or goes.
			{What: "cgroups' CPU of pods", Do: func(ctx context.Context) error {
				return c.cgroups.UpdateQoS(ctx, s.active())
			}},
		}},
		{Every: imagePeriod, Tasks: []housekeeping.Task{
			{What: "unused images", Do: func(ctx context.Context) error {
				return collectImages(ctx, c.unused, r.events)
			}},
		}},
	}
}

// collectImages removes unused images as the collector's thresholds ask. A failure is also an event of the Node: the
// reason is the disk, which no single pod is responsible for. The end of ctx is no event.
func collectImages(ctx context.Context, unused *images.Collector, recorder *events.Recorder) error {
	err := unused.Collect(ctx)
	var few *images.TooFew
	switch {
	case errors.As(err, &few):
		recorder.Node(corev1.EventTypeWarning, "FreeDiskSpaceFailed", err.Error())
	case err != nil && ctx.Err() == nil:
		recorder.Node(corev1.EventTypeWarning, "ImageGCFailed", err.Error())
	}
	return err
}
