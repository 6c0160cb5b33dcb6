package kubelet

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/housekeeping"
	"bonsai/pkg/kubelet/images"
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
		{Every: imagePeriod, Tasks: []housekeeping.Task{{What: "unused images", Do: k.collectImages}}},
	}
}

func (k *Kubelet) deadContainers() housekeeping.Containers {
	return housekeeping.Containers{Runtime: k.cri, Policy: k.cfg.ContainerGC, Ended: k.workers.Ended, Now: time.Now,
		RemoveLog: func(p *runtime.PodStatus, c *runtime.Container) error { return k.cfg.Logs.Remove(logs.Of(p, c)) }}
}

// collectImages removes unused images as the policy says, and tells of it where the node is shown that it could not.
func (k *Kubelet) collectImages(ctx context.Context) error {
	err := k.unused.Collect(ctx)
	var few *images.TooFew
	switch {
	case errors.As(err, &few):
		k.events.Node(corev1.EventTypeWarning, "FreeDiskSpaceFailed", err.Error())
	case err != nil && ctx.Err() == nil:
		k.events.Node(corev1.EventTypeWarning, "ImageGCFailed", err.Error())
	}
	return err
}

func (k *Kubelet) imageCollector() *images.Collector {
	return &images.Collector{Policy: k.cfg.ImageGC, Node: k.cri, Manager: k.images, Pods: k.pods.Pods,
		Removed: func(r images.Reason) { k.metrics.ImageRemoved(string(r)) }, Now: time.Now, Log: k.cfg.Log}
}
