package cri

import (
	"sync"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/runtime"
)

// memory keeps the details of sandboxes and containers. A list shows their states cheaply, and while the state is the
// one that the details were read in, they still hold: a ready sandbox keeps its addresses, a running container its
// start, an ended one its end. So most syncs of a pod need no call for details. It is bounded by what the runtime has:
// each full list drops the rest.
type memory struct {
	mu         sync.Mutex
	sandboxes  map[string]*runtimeapi.PodSandboxStatus
	containers map[string]runtime.Container
	// changes counts the changes of details.
	changes uint64
}

func newMemory() *memory {
	return &memory{sandboxes: map[string]*runtimeapi.PodSandboxStatus{}, containers: map[string]runtime.Container{}}
}

// sandbox returns the details of a sandbox that was and still is ready, or not ready; nil if they must be read.
func (m *memory) sandbox(s runtime.Sandbox) *runtimeapi.PodSandboxStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.sandboxes[s.ID]; r != nil && (r.State == runtimeapi.PodSandboxState_SANDBOX_READY) == s.Ready {
		return r
	}
	return nil
}

func (m *memory) keepSandbox(id string, r *runtimeapi.PodSandboxStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sandboxes[id] = r
}

// container returns the details of a container whose state is final or steady and has not changed since; false if they
// must be read.
func (m *memory) container(listed runtime.Container) (runtime.Container, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.containers[listed.ID.ID]
	return c, ok && c.State == listed.State && (c.State == runtime.StateRunning || c.State == runtime.StateExited)
}

// reads returns a number for keepContainer: details that were read before others were changed are not kept.
func (m *memory) reads() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes
}

func (m *memory) keepContainer(c runtime.Container, reads uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changes == reads {
		m.containers[c.ID.ID] = c
	}
}

// forgetContainer drops a container's details after they were changed.
func (m *memory) forgetContainer(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes++
	delete(m.containers, id)
}

// retain drops what a full list no longer has.
func (m *memory) retain(pods []*runtime.PodStatus) {
	sandboxes, containers := map[string]bool{}, map[string]bool{}
	for _, p := range pods {
		for _, s := range p.Sandboxes {
			sandboxes[s.ID] = true
		}
		for _, c := range p.Containers {
			containers[c.ID.ID] = true
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.sandboxes {
		if !sandboxes[id] {
			delete(m.sandboxes, id)
		}
	}
	for id := range m.containers {
		if !containers[id] {
			delete(m.containers, id)
		}
	}
}
