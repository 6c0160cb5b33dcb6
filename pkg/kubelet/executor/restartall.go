package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/runtime"
)

// restartAll ends all containers of a pod at once, without hooks and grace period, and removes them with their logs,
// except for ephemeral ones, which run only once. The sandbox and the volumes stay; the next round begins with the init
// containers (KEP-5532). The containers that caused the restart are removed last, so that a restart of the kubelet in
// between starts over. They wait out their back-off.
//
// It may be cut off anywhere: what still exists tells the next round what is left to do.
func (e *Executor) restartAll(ctx context.Context, f lifecycle.Facts, p *Pod) error {
	causes := map[runtime.ContainerID]bool{}
	for _, c := range lifecycle.RestartsAll(f) {
		causes[c.ID] = true
	}
	var first, last []*runtime.Container
	for i := range f.Runtime.Containers {
		c := &f.Runtime.Containers[i]
		if c.State == runtime.StateRunning {
			e.cfg.Events.Container(f.Pod, c.Name, corev1.EventTypeNormal, "Killing", "Stopping container "+c.Name)
			if err := e.cfg.Runtime.StopContainer(ctx, c.ID.ID, 0); err != nil {
				return err
			}
		}
		switch {
		case runtime.ContainerSpec(f.Pod, c.Name) == nil, c.Stuck: // that stays, and counts for nothing
		case causes[c.ID]:
			last = append(last, c)
		default:
			first = append(first, c)
		}
	}
	for _, c := range append(first, last...) {
		if err := errors.Join(e.cfg.Runtime.RemoveContainer(ctx, c.ID.ID),
			e.cfg.Logs.Remove(logs.Of(f.Runtime, c))); err != nil {
			return err
		}
		if causes[c.ID] {
			e.backOffRemoved(f, p, c)
		}
	}
	return nil
}

// backOffRemoved holds back the next start of a removed container as if the runtime still had its last life.
func (e *Executor) backOffRemoved(f lifecycle.Facts, p *Pod, c *runtime.Container) {
	spec := runtime.ContainerSpec(f.Pod, c.Name)
	if spec == nil {
		return
	}
	past, now := p.starts(spec), time.Now()
	if until := f.BackOff[c.Name]; until.After(now) {
		past.retry = until
		past.reason = lifecycle.CrashLoop(f.Pod, c.Name, past.backOff.Delay)
		e.cfg.Events.Container(f.Pod, c.Name, corev1.EventTypeWarning, "BackOff",
			fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", c.Name, f.Pod.Name, f.Pod.Namespace,
				f.Pod.UID))
	}
	past.backOff = past.backOff.Restarted(c.FinishedAt, now, e.cfg.MaxBackOff)
}
