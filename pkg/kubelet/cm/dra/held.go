package dra

import (
	corev1 "k8s.io/api/core/v1"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/runtime"
)

var _ cm.Holder = (*Manager)(nil)

// Held implements cm.Holder. It includes claims that are noted and not prepared yet; those have no devices.
func (m *Manager) Held(pod *corev1.Pod) map[string]*podresourcesapi.ContainerResources {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]*podresourcesapi.ContainerResources{}
	for c := range runtime.Containers(pod) {
		for _, u := range uses(pod, c) {
			e := m.named(pod, u.claim)
			if e == nil {
				continue
			}
			r := &podresourcesapi.DynamicResource{ClaimName: e.name, ClaimNamespace: e.namespace}
			for _, driver := range sortedKeys(e.devices) {
				for _, d := range e.devices[driver] {
					if d.isFor(u.request) {
						r.ClaimResources = append(r.ClaimResources, d.held(driver))
					}
				}
			}
			if out[c.Name] == nil {
				out[c.Name] = &podresourcesapi.ContainerResources{}
			}
			out[c.Name].DynamicResources = append(out[c.Name].DynamicResources, r)
		}
	}
	return out
}

func (d device) held(driver string) *podresourcesapi.ClaimResource {
	out := &podresourcesapi.ClaimResource{DriverName: driver, PoolName: d.pool, DeviceName: d.name,
		ShareId: (*string)(d.share)}
	for _, id := range d.cdi {
		out.CdiDevices = append(out.CdiDevices, &podresourcesapi.CDIDevice{Name: id})
	}
	return out
}

// Holdings implements cm.Holder: which devices there are ResourceSlices tell.
func (m *Manager) Holdings() *podresourcesapi.AllocatableResourcesResponse {
	return &podresourcesapi.AllocatableResourcesResponse{}
}
