package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// FailedReason implements cm.Preparer.
func (m *Manager) FailedReason() string { return "FailedCreatePodContainer" }

// Prepare implements cm.Preparer: it makes the pod's cgroup, or brings its values up to date.
func (m *Manager) Prepare(ctx context.Context, pod *corev1.Pod) error {
	defer m.observe("create", time.Now())
	if err := m.create(ctx, pod); err != nil {
		return fmt.Errorf("unable to ensure pod container exists: %w", err)
	}
	return nil
}

func (m *Manager) create(ctx context.Context, pod *corev1.Pod) error {
	if err := checkUID(pod.UID); err != nil {
		return err
	}
	v := m.cfg.forPod(pod)
	if _, over := m.over(pod, v); over {
		v.memory = 0 // a restart of the kubelet came before Settle
	}
	return m.make(ctx, m.path(pod), v)
}

// path returns the path of the pod's cgroup.
func (m *Manager) path(pod *corev1.Pod) string {
	return m.names.path(podParts(runtime.QOSClass(pod), pod.UID)...)
}

// Sandbox implements cm.SandboxProvider: the runtime makes the cgroups of the sandbox and of the containers below the
// pod's.
func (m *Manager) Sandbox(pod *corev1.Pod, o *runtime.SandboxOptions) {
	o.CgroupParent = m.names.parent(m.path(pod))
}

// Container implements cm.ContainerProvider: where the kernel can limit swap, containers get no more than their share.
func (m *Manager) Container(pod *corev1.Pod, c *corev1.Container, o *runtime.ContainerOptions) error {
	o.LimitSwap, o.Swap = m.limitsSwap(), m.cfg.Swap.limit(pod, c)
	return nil
}

// Unprepare implements cm.Provider: it kills what is left of the pod and removes its cgroup. It looks in all classes,
// because it has only the UID.
func (m *Manager) Unprepare(ctx context.Context, uid types.UID) error {
	if err := checkUID(uid); err != nil {
		return err
	}
	defer m.observe("destroy", time.Now())
	var errs []error
	for _, class := range []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable,
		corev1.PodQOSBestEffort} {
		errs = append(errs, m.remove(ctx, m.names.path(podParts(class, uid)...)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the cgroup: %w", err)
	}
	return nil
}

// Prepared implements cm.Provider: it returns all pods that have a cgroup in any hierarchy.
func (m *Manager) Prepared() ([]types.UID, error) {
	seen := map[types.UID]bool{}
	var out []types.UID
	for _, mount := range m.tree.mounts {
		for _, parts := range [][]string{{"kubepods"}, {"kubepods", "burstable"}, {"kubepods", "besteffort"}} {
			entries, err := os.ReadDir(filepath.Join(mount, m.names.path(parts...)))
			if err != nil {
				continue // not made yet
			}
			for _, e := range entries {
				if uid, ok := m.names.uid(path.Base(e.Name())); ok && e.IsDir() && !seen[uid] {
					seen[uid] = true
					out = append(out, uid)
				}
			}
		}
	}
	return out, nil
}
