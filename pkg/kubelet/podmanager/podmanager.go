// Package podmanager has the node's pods as their sources want them, and knows which object of the API server shows
// each pod: its own or, for a static pod, its mirror. It keeps the mirrors (mirror.go).
package podmanager

import (
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/runtime"
)

// Status is the record of the pods' statuses. It is called with the Manager locked, so that it never receives an object
// that no longer shows the pod. It must not call back.
type Status interface {
	// Observe receives the object of the API server that shows a pod; uid is the pod's own.
	Observe(uid types.UID, object *corev1.Pod)
	// Unobserve receives that no object shows the pod any more.
	Unobserve(uid types.UID)
	// Shown is the pod with its newest status.
	Shown(pod *corev1.Pod) *corev1.Pod
	// Forget drops what is known of a pod.
	Forget(uid types.UID)
}

// Config is what a Manager needs; everything is required.
type Config struct {
	Status Status
	Client Client
	// Changed is called when what Pods returns may have changed. It must not block.
	Changed func()
	Log     *slog.Logger
}

// Manager holds the pods. It is safe for concurrent use; its methods do not block, except Run.
type Manager struct {
	cfg Config
	// due wakes Run to compare the mirrors.
	due notify.Signal

	mu   sync.Mutex
	pods map[types.UID]*corev1.Pod // by the pod's own uid, mirrors not among them
	// mirrors are the mirror pods by namespace/name.
	mirrors map[string]*corev1.Pod
	// outlived has the mirrors, by their own uid, of static pods that have ended. Their status is about the life that
	// is over; a pod that comes back gets a new mirror.
	outlived map[types.UID]bool
}

// New returns a Manager that knows no pods.
func New(cfg Config) *Manager {
	return &Manager{cfg: cfg, due: notify.New(), pods: map[types.UID]*corev1.Pod{}, mirrors: map[string]*corev1.Pod{},
		outlived: map[types.UID]bool{}}
}

// Update records a pod as its source has it, which is never a mirror, and returns the previous version, nil if the pod
// is new. The returned pod is shared: nobody changes it.
func (m *Manager) Update(pod *corev1.Pod) (before *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before = m.pods[pod.UID]
	m.pods[pod.UID] = pod
	m.observeLocked(pod)
	if runtime.IsStatic(pod) {
		m.due.Notify()
	}
	m.cfg.Changed()
	return before
}

// observeLocked passes the object that shows a pod to the record of statuses, if there is one.
func (m *Manager) observeLocked(pod *corev1.Pod) {
	if !runtime.IsStatic(pod) {
		m.cfg.Status.Observe(pod.UID, pod)
	} else if mirror := m.mirrorLocked(pod); mirror != nil {
		m.cfg.Status.Observe(pod.UID, mirror)
	}
}

// Remove records that a pod is gone from its source.
func (m *Manager) Remove(pod *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, pod.UID)
	if runtime.IsStatic(pod) {
		m.due.Notify() // its mirror shows it until it is removed
	} else {
		m.cfg.Status.Unobserve(pod.UID)
	}
	m.cfg.Changed()
}

// Begin is called when a life of a pod begins. It returns what the source last had, nil if the pod is gone. It passes
// the object that shows the pod to the record of statuses again: the end of an earlier life may have removed it there.
func (m *Manager) Begin(uid types.UID) *corev1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	pod := m.pods[uid]
	if pod != nil {
		m.observeLocked(pod)
	}
	return pod
}

// Forget is called when a life of a pod has ended. Its status is forgotten, and so is what a mirror shows of it.
func (m *Manager) Forget(pod *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cfg.Status.Forget(pod.UID)
	if mirror := m.mirrorLocked(pod); mirror != nil {
		m.outlived[mirror.UID] = true
	}
	m.due.Notify()
}

// Shown is the pod with its newest status.
func (m *Manager) Shown(pod *corev1.Pod) *corev1.Pod { return m.cfg.Status.Shown(pod) }

// Known reports whether a source has the pod.
func (m *Manager) Known(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pods[uid] != nil
}

// Desired returns the pods that the sources want on the node, as the sources have them.
func (m *Manager) Desired() []*corev1.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*corev1.Pod, 0, len(m.pods))
	for _, p := range m.pods {
		out = append(out, p)
	}
	return out
}

// Pods returns all pods with their newest statuses.
func (m *Manager) Pods() []*corev1.Pod {
	pods := m.Desired()
	for i, p := range pods {
		pods[i] = m.Shown(p)
	}
	return pods
}

// Pod finds a pod by name and returns it with its newest status. If two have the name, it is the one that is not being
// deleted.
func (m *Manager) Pod(namespace, name string) (*corev1.Pod, bool) {
	m.mu.Lock()
	var found *corev1.Pod
	for _, p := range m.pods {
		if p.Namespace == namespace && p.Name == name && (found == nil || found.DeletionTimestamp != nil) {
			found = p
		}
	}
	m.mu.Unlock()
	if found == nil {
		return nil, false
	}
	return m.Shown(found), true
}
