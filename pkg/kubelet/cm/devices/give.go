package devices

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/runtime"
)

var (
	_ cm.ContainerProvider = (*Manager)(nil)
	_ cm.Starter           = (*Manager)(nil)
	_ cm.Reporter          = (*Manager)(nil)
)

// Container implements cm.ContainerProvider. What plug-ins give comes before what is the pod's own, which may replace
// it; of what several plug-ins want at the same place, the first one's counts, by the names of their resources. It only
// reads what Confirm has stored and calls no plug-in, so a container can restart while the plug-in is away.
func (m *Manager) Container(pod *corev1.Pod, c *corev1.Container, o *runtime.ContainerOptions) error {
	m.mu.Lock()
	has := maps.Clone(m.pods[pod.UID][c.Name])
	m.mu.Unlock()
	var g given
	for _, resource := range sortedKeys(has) {
		if has[resource].response != nil {
			g.add(has[resource].response)
		}
	}
	o.Env = append(g.env, o.Env...)
	o.Mounts = append(g.mounts, o.Mounts...)
	o.Devices = append(o.Devices, g.devices...)
	o.CDIDevices = append(o.CDIDevices, g.cdi...)
	if len(g.annotations) > 0 {
		maps.Copy(g.annotations, o.Annotations)
		o.Annotations = g.annotations
	}
	return nil
}

// given is what a container gets of all plug-ins.
type given struct {
	env         []runtime.KeyValue
	mounts      []runtime.Mount
	devices     []runtime.Device
	cdi         []string
	annotations map[string]string
}

// add merges the answer of one plug-in. Plug-ins are independent programs, and nothing keeps two of them from the same
// path or variable. The runtime would refuse a container with two mounts at one place, hence the first one counts.
func (g *given) add(r *pluginapi.ContainerAllocateResponse) {
	for _, name := range sortedKeys(r.Envs) {
		if !slices.ContainsFunc(g.env, func(e runtime.KeyValue) bool { return e.Name == name }) {
			g.env = append(g.env, runtime.KeyValue{Name: name, Value: r.Envs[name]})
		}
	}
	for _, n := range r.Mounts {
		if !slices.ContainsFunc(g.mounts, func(h runtime.Mount) bool {
			return h.ContainerPath == n.GetContainerPath()
		}) {
			g.mounts = append(g.mounts,
				runtime.Mount{ContainerPath: n.GetContainerPath(), HostPath: n.GetHostPath(),
					ReadOnly: n.GetReadOnly()})
		}
	}
	for _, d := range r.Devices {
		if !slices.ContainsFunc(g.devices, func(h runtime.Device) bool {
			return h.ContainerPath == d.GetContainerPath()
		}) {
			g.devices = append(g.devices,
				runtime.Device{ContainerPath: d.GetContainerPath(), HostPath: d.GetHostPath(),
					Permissions: d.GetPermissions()})
		}
	}
	for _, d := range r.CdiDevices {
		if !slices.Contains(g.cdi, d.GetName()) {
			g.cdi = append(g.cdi, d.GetName())
		}
	}
	for name, value := range r.Annotations {
		if g.annotations == nil {
			g.annotations = map[string]string{}
		}
		if _, taken := g.annotations[name]; !taken {
			g.annotations[name] = value
		}
	}
}

// Starting implements cm.Starter: it tells plug-ins that want to know. The executor calls it before each start of a
// container, also a restart. It copies what it needs under mu and calls the plug-ins without it. An error keeps the
// container from starting. A resource whose plug-in is away is skipped.
func (m *Manager) Starting(ctx context.Context, pod *corev1.Pod, c *corev1.Container) error {
	type told struct {
		p   *plugin
		ids []string
	}
	m.mu.Lock()
	var tell []told
	for _, resource := range sortedKeys(m.pods[pod.UID][c.Name]) {
		if k := m.resources[resource]; k != nil && k.plugin != nil && k.plugin.options.GetPreStartRequired() {
			tell = append(tell, told{k.plugin, m.pods[pod.UID][c.Name][resource].ids})
		}
	}
	m.mu.Unlock()
	for _, t := range tell {
		if err := t.p.preStart(ctx, t.ids); err != nil {
			return err
		}
	}
	return nil
}

// Unprepare implements cm.Provider.
func (m *Manager) Unprepare(_ context.Context, uid types.UID) error {
	m.Release(uid)
	return nil
}

// Prepared implements cm.Provider. It includes pods from before a restart of the kubelet, which load read.
func (m *Manager) Prepared() ([]types.UID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.pods)), nil
}

// Health implements cm.Reporter. Of devices whose plug-in is gone, or that it lists no more, it is not known.
func (m *Manager) Health(pod *corev1.Pod) map[string][]corev1.ResourceStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pods[pod.UID] == nil {
		return nil
	}
	out := map[string][]corev1.ResourceStatus{}
	for container, has := range m.pods[pod.UID] {
		for _, resource := range sortedKeys(has) {
			s := corev1.ResourceStatus{Name: corev1.ResourceName(resource)}
			for _, id := range has[resource].ids {
				s.Resources = append(s.Resources,
					corev1.ResourceHealth{ResourceID: corev1.ResourceID(id), Health: m.health(resource, id)})
			}
			out[container] = append(out[container], s)
		}
	}
	return out
}

// health returns what is known of a device. The caller holds mu.
func (m *Manager) health(resource, id string) corev1.ResourceHealthStatus {
	k := m.resources[resource]
	if k == nil || k.plugin == nil {
		return corev1.ResourceHealthStatusUnknown
	}
	switch d, there := k.devices[id]; {
	case !there:
		return corev1.ResourceHealthStatusUnknown
	case d.healthy:
		return corev1.ResourceHealthStatusHealthy
	}
	return corev1.ResourceHealthStatusUnhealthy
}
