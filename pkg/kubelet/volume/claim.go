package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// spec resolves a volume of the pod, once in the pod's life, and holds the PersistentVolume for it.
func (m *Manager) spec(ctx context.Context, w *pass, v *corev1.Volume) (Spec, error) {
	if !isClaim(v) {
		return Spec{Volume: v}, nil
	}
	w.mu.Lock()
	spec, known := w.resolved[v.Name]
	w.mu.Unlock()
	if known {
		return spec, nil
	}
	spec, err := m.cfg.Claims.Resolve(ctx, w.pod, v)
	if err != nil {
		return Spec{}, err
	}
	err = w.change(func() error {
		if err := m.hold(w.pod.UID, spec.PV); err != nil {
			return Unprocessed(v.Name, err)
		}
		if w.resolved == nil {
			w.resolved = map[string]Spec{}
		}
		w.resolved[v.Name] = spec
		return nil
	})
	return spec, err
}

// Unprocessed returns the error of a volume that cannot even be started with, in upstream's words.
func Unprocessed(name string, err error) error {
	return fmt.Errorf("Unable to attach or mount volumes: unmounted volumes=[%s], unattached volumes=[], failed to process volumes=[%s]: %w", name, name, err)
}

// hold records that a pod uses a PersistentVolume. One that is for a single pod (ReadWriteOncePod) has one user at a
// time: the check and the record are one step under mu.
func (m *Manager) hold(uid types.UID, pv *corev1.PersistentVolume) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	users := m.users[pv.Name]
	if len(users) > 0 && !users[uid] && slices.Contains(pv.Spec.AccessModes, corev1.ReadWriteOncePod) {
		return errors.New("volume uses the ReadWriteOncePod access mode and is already in use by another pod")
	}
	if users == nil {
		users = map[types.UID]bool{}
		m.users[pv.Name] = users
	}
	users[uid] = true
	return nil
}

// release forgets the PersistentVolumes that a pod has used.
func (m *Manager) release(uid types.UID, specs map[string]Spec) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range specs {
		delete(m.users[s.PV.Name], uid)
		if len(m.users[s.PV.Name]) == 0 {
			delete(m.users, s.PV.Name)
			m.cfg.Growth.Forget(s.PV.Name)
		}
	}
}
