package executor

import (
	"context"
	"errors"

	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
)

// ResizeError is why a resize could not be done. The syncer shows it in the condition PodResizeInProgress.
type ResizeError struct{ Err error }

// Error is the message of the pod's condition.
func (e *ResizeError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *ResizeError) Unwrap() error { return e.Err }

// grow raises the pod's cgroup first and then updates the running containers: a container may not have more than its
// pod. Every container is tried, even after an error.
//
// KEP-1287 fixes the order: first the pod up, then the containers, then the pod down.
func (e *Executor) grow(ctx context.Context, f lifecycle.Facts, plan lifecycle.Plan) error {
	if plan.ResizePod {
		if err := e.cfg.Cgroups.Grow(ctx, f.Pod); err != nil {
			return &ResizeError{err}
		}
	}
	var errs []error
	for _, u := range plan.Updates {
		errs = append(errs, e.update(ctx, f, u))
	}
	if err := errors.Join(errs...); err != nil {
		return &ResizeError{err}
	}
	return nil
}

// update gives one running container its new resources and records that. A lower memory limit than the container uses
// would kill it, so MayLimit is asked first.
func (e *Executor) update(ctx context.Context, f lifecycle.Facts, u lifecycle.Update) error {
	pod, c, id := f.Pod, u.Container, u.Status.ID.ID
	was, gets := f.Resize.Actuated[c.Name], runtime.Effective(pod, c)
	if limit := gets.Limits.Memory(); was.Limits.Memory().IsZero() || limit.Cmp(*was.Limits.Memory()) < 0 {
		if err := e.cfg.Cgroups.MayLimit(pod, c.Name, id, limit.Value()); err != nil {
			return err
		}
	}
	q := runtime.ContainerRequest{Pod: pod, Container: c, Node: e.cfg.Capacity}
	if err := e.cfg.Resources.Container(pod, c, &q.Options); err != nil {
		return err
	}
	if err := e.cfg.Runtime.UpdateContainer(ctx, id, q); err != nil {
		return err
	}
	e.cfg.Allocations.Actuated(pod.UID, c.Name, gets)
	return nil
}

// settle gives the pod's cgroup its final values once its containers have theirs. grown is the error of grow: as long
// as a container has more than it should, the pod's limit must not go below it.
func (e *Executor) settle(ctx context.Context, f lifecycle.Facts, plan lifecycle.Plan, grown error) error {
	if !plan.ResizePod || grown != nil {
		return grown
	}
	if err := e.cfg.Cgroups.Settle(ctx, f.Pod); err != nil {
		return &ResizeError{err}
	}
	e.cfg.Allocations.PodActuated(f.Pod.UID, f.Resize.Generation)
	return nil
}
