package housekeeping

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Runtime is the container runtime.
type Runtime interface {
	Pods(ctx context.Context) ([]*runtime.PodStatus, error)
	PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error)
	RemoveContainer(ctx context.Context, id string) error
	RemoveSandbox(ctx context.Context, id string) error
}

// Containers removes dead containers and sandboxes.
type Containers struct {
	Runtime Runtime
	Policy  ContainerPolicy
	// RemoveLog removes the logs of a container. What is gone is fine.
	RemoveLog func(p *runtime.PodStatus, c *runtime.Container) error
	// Ended reports whether a pod has ended, so that nothing is asked of its containers any more but their logs.
	Ended func(types.UID) bool
	Now   func() time.Time
}

// Clean keeps as many dead containers as the policy says, for their logs and their last state, and the newest sandbox
// of a pod.
func (x Containers) Clean(ctx context.Context) error { return x.clean(ctx, x.Policy, false) }

// RemoveUnused also removes all dead containers of pods that have ended, however young.
func (x Containers) RemoveUnused(ctx context.Context) error {
	p := x.Policy
	p.MinAge = 0
	return x.clean(ctx, p, true)
}

// clean removes what is too much. A pod that has something of it is looked at again right before: what is dead and not
// the newest then will never be anything else, and nothing of a pod that has ended will.
func (x Containers) clean(ctx context.Context, policy ContainerPolicy, all bool) error {
	pods, err := x.Runtime.Pods(ctx)
	if err != nil {
		return err
	}
	victims := policy.victims(pods, x.Ended, all, x.Now())
	var errs []error
	for _, p := range pods {
		if !slices.ContainsFunc(p.Containers, func(c runtime.Container) bool {
			return victims[c.ID.ID]
		}) && len(unused(p)) == 0 {
			continue
		}
		now, err := x.Runtime.PodStatus(ctx, p.UID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		now.Name, now.Namespace = p.Name, p.Namespace
		for _, c := range removable(now, x.Ended(p.UID)) {
			if victims[c.ID.ID] {
				errs = append(errs, x.Runtime.RemoveContainer(ctx, c.ID.ID), x.RemoveLog(now, &c))
			}
		}
		for _, id := range unused(now) {
			errs = append(errs, x.Runtime.RemoveSandbox(ctx, id))
		}
	}
	return errors.Join(errs...)
}

// unused lists the sandboxes that are neither ready nor the newest and have no containers.
func unused(p *runtime.PodStatus) []string {
	var out []string
	for i, s := range p.Sandboxes {
		if i > 0 && !s.Ready && !slices.ContainsFunc(p.Containers, func(c runtime.Container) bool {
			return c.SandboxID == s.ID
		}) {
			out = append(out, s.ID)
		}
	}
	return out
}
