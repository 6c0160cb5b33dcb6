package volume

import "k8s.io/apimachinery/pkg/types"

// What the tests see of the inside: they are in a package of their own, as they use the sources, which import this one.
var (
	ErrUnmounted  = errUnmounted
	MountsBeneath = mountsBeneath
)

// PodsDir is the directory of all pods' directories.
func (m *Manager) PodsDir() string { return m.cfg.PodsDir }

// Remembers reports whether the manager knows the pod.
func (m *Manager) Remembers(uid types.UID) bool { return m.entry(uid, false) != nil }

// RefreshDue reports whether another refresh follows the one in progress.
func (m *Manager) RefreshDue(uid types.UID) bool {
	p := m.entry(uid, false)
	m.mu.Lock()
	defer m.mu.Unlock()
	return p.again
}
