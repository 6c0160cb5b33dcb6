package cm

import (
	corev1 "k8s.io/api/core/v1"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Holder is a Provider that knows which individual things containers have.
type Holder interface {
	// Held returns them for a pod's containers, by name. The name in each is left empty.
	Held(pod *corev1.Pod) map[string]*podresourcesapi.ContainerResources
	// Holdings returns everything that containers may have.
	Holdings() *podresourcesapi.AllocatableResourcesResponse
}

// Held returns the individual things that one of a pod's containers has from all Providers.
func (m *Manager) Held(pod *corev1.Pod, container string) *podresourcesapi.ContainerResources {
	out := &podresourcesapi.ContainerResources{Name: container}
	for _, h := range of[Holder](m.Providers) {
		if c := h.Held(pod)[container]; c != nil {
			out.Devices, out.CpuIds = append(out.Devices, c.Devices...), append(out.CpuIds, c.CpuIds...)
			out.Memory, out.DynamicResources = append(out.Memory, c.Memory...),
				append(out.DynamicResources, c.DynamicResources...)
		}
	}
	return out
}

// Holdings returns all individual things that containers may have.
func (m *Manager) Holdings() *podresourcesapi.AllocatableResourcesResponse {
	out := &podresourcesapi.AllocatableResourcesResponse{}
	for _, h := range of[Holder](m.Providers) {
		all := h.Holdings()
		out.Devices, out.CpuIds, out.Memory = append(out.Devices, all.Devices...), append(out.CpuIds, all.CpuIds...),
			append(out.Memory, all.Memory...)
	}
	return out
}

// Topology returns a set of nodes in the form of the pod-resources API; nil for none.
func (n Nodes) Topology() *podresourcesapi.TopologyInfo {
	if n == 0 {
		return nil
	}
	out := &podresourcesapi.TopologyInfo{}
	for _, id := range n.IDs() {
		out.Nodes = append(out.Nodes, &podresourcesapi.NUMANode{ID: int64(id)})
	}
	return out
}
