package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/podspec"
	"bonsai/pkg/kubelet/runtime"
)

// minGrace is the least time a container gets between its stop signal and its kill, whatever its preStop hook has used
// up.
const minGrace = 2 * time.Second

// stopper ends containers of one pod. Its functions are called from several goroutines at once.
type stopper struct {
	pod *corev1.Pod
	// end is the end of the grace period, which preStop hooks, the wait for other containers and the stop signal share.
	end time.Time
	// preStop runs the container's hook, if it has one, until ctx is done.
	preStop func(ctx context.Context, c *runtime.Container)
	// stop sends the stop signal and, after grace, SIGKILL.
	stop func(ctx context.Context, id string, grace time.Duration) error
}

// all ends a pod's containers. Their preStop hooks start together. Then the regular ones are stopped, each after its
// own hook. A sidecar is stopped once the regular containers and the sidecars after it have ended, or the grace period
// is over.
//
// The rules: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination (steps 1 and 2, and "Pod
// Termination And Sidecar Containers").
//
// One goroutine per container; place has no cycles, so none waits for ever, and all waits end with the grace period.
func (s *stopper) all(ctx context.Context, list []*runtime.Container) error {
	ended := make([]chan struct{}, len(list))
	for i := range list {
		ended[i] = make(chan struct{})
	}
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, c := range list {
		wg.Go(func() {
			defer close(ended[i])
			var before []<-chan struct{}
			for j, other := range list {
				if place := s.place(c); place > 0 && s.place(other) < place {
					before = append(before, ended[j])
				}
			}
			errs[i] = s.one(ctx, c, before)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// place returns a container's rank in the order of stopping, which goes from 0 up: 0 for all but running sidecars, and
// more for a sidecar than for those after it in the spec.
func (s *stopper) place(c *runtime.Container) int {
	init := s.pod.Spec.InitContainers
	for i := range init {
		if init[i].Name == c.Name && podspec.IsSidecar(&init[i]) && c.State == runtime.StateRunning {
			return len(init) - i
		}
	}
	return 0
}

// one runs the preStop hook, waits for the containers that must end before this one, and stops it. A container gets at
// least minGrace for its stop signal, however long the hook took, unless the deletion asked for less.
//
// Errors of hooks are events only: they must not keep a container alive.
func (s *stopper) one(ctx context.Context, c *runtime.Container, before []<-chan struct{}) error {
	timed, cancel := context.WithDeadline(ctx, s.end)
	defer cancel()
	if c.State == runtime.StateRunning && timed.Err() == nil {
		s.preStop(timed, c)
	}
	for _, ended := range before {
		select {
		case <-ended:
		case <-timed.Done():
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	grace := max(time.Until(s.end).Round(time.Second), minGrace)
	if total := shortGrace(s.pod); total >= 0 && total < grace {
		grace = total
	}
	if err := s.stop(ctx, c.ID.ID, grace); err != nil {
		return fmt.Errorf("kill container %s: %w", c.Name, err)
	}
	return nil
}

// shortGrace returns the deletion's grace period if it is shorter than minGrace, else -1: a user who deletes "now" does
// not wait.
func shortGrace(pod *corev1.Pod) time.Duration {
	if pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds < int64(minGrace/time.Second) {
		return time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	return -1
}
