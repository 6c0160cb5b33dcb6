package kubelet

import (
	"context"
	"time"

	"bonsai/pkg/kubelet/housekeeping"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/runtime"
)

// Periods of the cleaning.
const (
	cleanPeriod = 30 * time.Second
	imagePeriod = 5 * time.Minute
)

// housekeeping is the list of what is cleaned up: what is left of pods that are gone, once all that are not are known, and unused images.
func (k *Kubelet) housekeeping() []housekeeping.Round {
	return []housekeeping.Round{
		{Every: cleanPeriod, Ready: k.sources.Synced, Tasks: []housekeeping.Task{
			{What: "dead containers", Do: k.deadContainers().Clean},
			{What: "directories of pods", Do: func(ctx context.Context) error { return k.volumes.Cleanup(ctx, k.workers.WhenGone) }},
			{What: "staged volumes", Do: k.csi.Clean},
			{What: "resources of pods", Do: func(ctx context.Context) error { return k.resources.Reconcile(ctx, k.workers.WhenFinished) }},
			{What: "logs of pods", Do: func(context.Context) error { return k.cfg.Logs.Clean(k.workers.WhenGone) }},
			{What: "cgroups' CPU of pods", Do: func(context.Context) error { return k.cgroups.UpdateQoS(k.active()) }},
		}},
		{Every: imagePeriod, Tasks: []housekeeping.Task{{What: "unused images", Do: k.unused.Collect}}},
	}
}

func (k *Kubelet) deadContainers() housekeeping.Containers {
	return housekeeping.Containers{Runtime: k.cri, Ended: k.workers.Ended,
		RemoveLog: func(p *runtime.PodStatus, c *runtime.Container) error { return k.cfg.Logs.Remove(logs.Of(p, c)) }}
}
