package cm

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Manager gives pods what all Providers have for them, in the order of the list, and takes it back in the opposite
// order. It does not remember what pods have: the Providers do. It must not be copied.
type Manager struct {
	// Providers are in an order in which each may need what those before it gave.
	Providers []Provider
	// Topology is how near to each other a pod's resources must be; by default it does not matter.
	Topology Topology
	// Metrics is required where a topology is considered.
	Metrics Metrics
	// Event tells users of what goes wrong; kind is Warning.
	Event func(pod *corev1.Pod, kind, reason, message string)
	Log   *slog.Logger

	// mu is held while Admit chooses what a pod gets, so that two pods never get the same thing.
	mu sync.Mutex
}

// Prepare gives a pod what it must have before its containers start. If a Provider fails, the pod keeps what the others
// gave: Prepare is called again, or Unprepare when the pod has ended.
func (m *Manager) Prepare(ctx context.Context, pod *corev1.Pod) error {
	for _, p := range of[Preparer](m.Providers) {
		if err := p.Prepare(ctx, pod); err != nil {
			if ctx.Err() == nil {
				m.Event(pod, corev1.EventTypeWarning, p.FailedReason(), err.Error())
			}
			return err
		}
	}
	return nil
}

// Sandbox adds to o what a prepared pod's sandbox is to be made with.
func (m *Manager) Sandbox(pod *corev1.Pod, o *runtime.SandboxOptions) {
	for _, p := range of[SandboxProvider](m.Providers) {
		p.Sandbox(pod, o)
	}
}

// Container adds to o what a container of a prepared pod is to be made with.
func (m *Manager) Container(pod *corev1.Pod, c *corev1.Container, o *runtime.ContainerOptions) error {
	for _, p := range of[ContainerProvider](m.Providers) {
		if err := p.Container(pod, c, o); err != nil {
			return err
		}
	}
	return nil
}

// Unprepare takes back what a pod has whose containers and sandbox have ended. One failure does not stop the others.
func (m *Manager) Unprepare(ctx context.Context, uid types.UID) error {
	var errs []error
	for _, p := range slices.Backward(m.Providers) {
		errs = append(errs, p.Unprepare(ctx, uid))
	}
	return errors.Join(errs...)
}

// Reconcile takes back what pods have that no longer need it. whenEnded is asked at the moment of taking it: it runs f
// if the pod's containers have ended, and keeps the pod from starting over until f is done.
func (m *Manager) Reconcile(ctx context.Context, whenEnded func(uid types.UID, f func() error) error) error {
	var errs []error
	var all []types.UID
	for _, p := range m.Providers {
		uids, err := p.Prepared()
		all, errs = append(all, uids...), append(errs, err)
	}
	slices.Sort(all)
	for _, uid := range slices.Compact(all) {
		errs = append(errs, whenEnded(uid, func() error {
			if err := m.Unprepare(ctx, uid); err != nil {
				return err
			}
			m.Log.Info("took back what a pod that is gone had been given", "uid", uid)
			return nil
		}))
	}
	return errors.Join(errs...)
}
