package housekeeping

import (
	"context"
	"errors"
	"slices"

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
	// RemoveLog removes the logs of a container. What is gone is fine.
	RemoveLog func(p *runtime.PodStatus, c *runtime.Container) error
	// Ended tells whether a pod has ended, so that nothing is asked of its containers any more but their logs.
	Ended func(types.UID) bool
}

// Clean keeps one dead container per name, for its logs and its last state, and the newest sandbox of a pod. A pod that has too many is
// looked at again right before: what is dead and not the newest then will never be anything else.
func (x Containers) Clean(ctx context.Context) error { return x.clean(ctx, excess) }

// RemoveUnused also removes the dead containers of pods that have ended.
func (x Containers) RemoveUnused(ctx context.Context) error {
	return x.clean(ctx, func(p *runtime.PodStatus) []runtime.Container {
		if !x.Ended(p.UID) {
			return excess(p)
		}
		return slices.DeleteFunc(slices.Clone(p.Containers), func(c runtime.Container) bool { return c.State != runtime.StateExited })
	})
}

func (x Containers) clean(ctx context.Context, excess func(*runtime.PodStatus) []runtime.Container) error {
	pods, err := x.Runtime.Pods(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pods {
		if len(excess(p)) == 0 && len(unused(p)) == 0 {
			continue
		}
		now, err := x.Runtime.PodStatus(ctx, p.UID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		now.Name, now.Namespace = p.Name, p.Namespace
		for _, c := range excess(now) {
			errs = append(errs, x.Runtime.RemoveContainer(ctx, c.ID.ID), x.RemoveLog(now, &c))
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
		if i > 0 && !s.Ready && !slices.ContainsFunc(p.Containers, func(c runtime.Container) bool { return c.SandboxID == s.ID }) {
			out = append(out, s.ID)
		}
	}
	return out
}

// excess lists the dead containers beyond the newest one of each name, besides the one that is current.
func excess(p *runtime.PodStatus) []runtime.Container {
	seen := map[string]int{}
	var out []runtime.Container
	for i, c := range p.Containers {
		if c.State == runtime.StateExited && seen[c.Name] > 0 && deadBefore(p, i) {
			out = append(out, c)
		}
		seen[c.Name]++
	}
	return out
}

// deadBefore tells whether a newer container of the same name has ended too.
func deadBefore(p *runtime.PodStatus, i int) bool {
	for j := range i {
		if p.Containers[j].Name == p.Containers[i].Name && p.Containers[j].State == runtime.StateExited {
			return true
		}
	}
	return false
}
