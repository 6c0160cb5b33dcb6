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

// Manager gives pods what all Providers have for them, in the order of the list, and takes it back in the opposite one.
// What pods have the Providers know. It must not be copied.
type Manager struct {
	// Providers are given in the order in which one may need what another gives.
	Providers []Provider
	// Topology is how what pods get is to be near to each other; by default nothing needs to.
	Topology Topology
	// Metrics is required where a topology is considered.
	Metrics Metrics
	// Event tells users of what goes wrong; kind is Warning.
	Event func(pod *corev1.Pod, kind, reason, message string)
	Log   *slog.Logger

	// mu is held while it is chosen what a pod gets that wants something.
	mu sync.Mutex
}

// Prepare gives a pod what it must have before its containers start. What it has already stays when something fails: it
// is tried again, or taken back with Unprepare when the pod has ended.
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

// Unprepare takes back what a pod has whose containers and sandbox have ended. One Provider that fails keeps none of
// the others from it.
func (m *Manager) Unprepare(ctx context.Context, uid types.UID) error {
	var errs []error
	for _, p := range slices.Backward(m.Providers) {
		errs = append(errs, p.Unprepare(ctx, uid))
	}
	return errors.Join(errs...)
}

// Reconcile takes back what pods have that need it no more. whenEnded is asked for each at the moment of the taking: it
// does f if the pod's containers have ended, and keeps the pod from starting over until f is done.
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
