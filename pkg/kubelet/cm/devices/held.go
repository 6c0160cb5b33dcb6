package devices

import (
	corev1 "k8s.io/api/core/v1"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"bonsai/pkg/kubelet/cm"
)

var _ cm.Holder = (*Manager)(nil)

// Held implements cm.Holder.
func (m *Manager) Held(pod *corev1.Pod) map[string]*podresourcesapi.ContainerResources {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]*podresourcesapi.ContainerResources{}
	for container, has := range m.pods[pod.UID] {
		c := &podresourcesapi.ContainerResources{}
		for _, resource := range sortedKeys(has) {
			for _, id := range has[resource].ids {
				c.Devices = append(c.Devices, one(resource, id, has[resource].nodes[id]))
			}
		}
		out[container] = c
	}
	return out
}

// Holdings implements cm.Holder: the healthy devices.
func (m *Manager) Holdings() *podresourcesapi.AllocatableResourcesResponse {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := &podresourcesapi.AllocatableResourcesResponse{}
	for _, resource := range sortedKeys(m.resources) {
		healthy := m.resources[resource].healthy()
		for _, id := range sortedKeys(healthy) {
			out.Devices = append(out.Devices, one(resource, id, healthy[id]))
		}
	}
	return out
}

func one(resource, id string, near cm.Nodes) *podresourcesapi.ContainerDevices {
	return &podresourcesapi.ContainerDevices{ResourceName: resource, DeviceIds: []string{id}, Topology: near.Topology()}
}
