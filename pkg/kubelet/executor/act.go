package executor

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
)

// Act carries out one plan and returns when it is done or ctx ends. A failure of the pod as a whole ends it; failures
// of single containers are collected, so that one container does not hold up the others. The order is the plan's: a
// container is removed before its name is used again.
//
// The pod's worker calls it, once for each plan, without a lock. After an error what was done stays, and the next plan
// goes on from there.
func (e *Executor) Act(ctx context.Context, f lifecycle.Facts, p *Pod, plan lifecycle.Plan) error {
	// The other fields are for the next plan: it is made from what is left after this.
	if plan.KillPod {
		if plan.NewSandbox {
			e.cfg.Events.Pod(f.Pod, corev1.EventTypeNormal, "SandboxChanged",
				"Pod sandbox changed, it will be killed and re-created.")
		}
		return e.KillPod(ctx, f.Pod, f.Runtime, podGrace(f.Pod))
	}
	if plan.RestartAll {
		return e.restartAll(ctx, f, p)
	}
	if plan.NewSandbox {
		return e.newSandbox(ctx, f, p, plan.Attempt)
	}
	// A container that cannot be ended or removed, and may be about to run after all, keeps its own successor from
	// starting, but no other container.
	var errs []error
	// By the container's name: its name in the runtime is taken as long as it exists.
	stays := map[string]bool{}
	for _, x := range plan.Kill {
		if err := e.killOne(ctx, f.Pod, x); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			errs, stays[x.Status.Name] = append(errs, err), true
		}
	}
	// After kills, which free what others may be given; before starts, which may need the pod's larger limits. settle
	// comes last, when no container has more than its new limit.
	resized := e.grow(ctx, f, plan)
	for _, c := range plan.Remove {
		if err := e.cfg.Runtime.RemoveContainer(ctx, c.ID.ID); err != nil {
			errs, stays[c.Name] = append(errs, err), true
		}
	}
	for _, s := range plan.Start {
		if stays[s.Container.Name] {
			continue
		}
		if err := e.start(ctx, f, p, s); err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(append(errs, e.settle(ctx, f, plan, resized))...)
}

// HoldBack records, for the status, why containers wait whose start the plan holds back. The event comes once for each
// new reason, not in every round.
//
// The pod's worker calls it in every round, also where there is nothing to do.
func (e *Executor) HoldBack(f lifecycle.Facts, p *Pod, plan lifecycle.Plan) {
	for c := range runtime.Containers(f.Pod) {
		s := p.starts(c)
		if _, held := plan.Wait[c.Name]; !held || s.retry.After(f.Now) {
			continue // the reason why it could not be started is already there
		}
		r := lifecycle.CrashLoop(f.Pod, c.Name, s.backOff.Delay)
		if s.reason != r {
			e.cfg.Events.Container(f.Pod, c.Name, corev1.EventTypeWarning, "BackOff",
				fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", c.Name, f.Pod.Name,
					f.Pod.Namespace, f.Pod.UID))
		}
		s.reason = r
	}
}
