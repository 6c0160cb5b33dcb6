package devices

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/podspec"
	"bonsai/pkg/kubelet/cm"
)

var _ cm.Allocator = (*Manager)(nil)

// wants returns how many devices a container asks for, by resource. The caller holds mu. It reads limits: the API
// server refuses pods whose requests and limits of an extended resource differ. A number beyond maxDevices is cut, so
// that it fits an int and int32 and can still never be satisfied.
func (m *Manager) wants(c *corev1.Container) map[string]int {
	out := map[string]int{}
	for name, q := range c.Resources.Limits {
		if n := q.Value(); n > 0 && n <= maxDevices && m.resources[string(name)] != nil {
			out[string(name)] = int(n)
		} else if n > maxDevices && m.resources[string(name)] != nil {
			out[string(name)] = maxDevices + 1 // more than there can be
		}
	}
	return out
}

// Wants implements cm.Allocator.
func (m *Manager) Wants(pod *corev1.Pod) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	wants := func(c corev1.Container) bool { return len(m.wants(&c)) > 0 }
	return slices.ContainsFunc(pod.Spec.InitContainers, wants) || slices.ContainsFunc(pod.Spec.Containers, wants)
}

// Allocate implements cm.Allocator. It is called for one pod at a time. If it fails for one resource, the pod keeps
// what it got of others until cm.Manager.Admit releases it.
func (m *Manager) Allocate(ctx context.Context, pod *corev1.Pod, c *corev1.Container, near cm.Nodes) error {
	m.mu.Lock()
	wants := m.wants(c)
	m.mu.Unlock()
	for _, resource := range sortedKeys(wants) {
		if err := m.allocate(ctx, pod, c, resource, wants[resource], near); err != nil {
			return err
		}
	}
	return nil
}

// allocate chooses a container's devices of one resource. The plug-in's preference is asked without the lock, which is
// safe because pods are admitted one at a time (see Allocate): nobody else takes a device meanwhile. A container that
// has devices already, after a restart of the kubelet, keeps the same ones or is refused: its processes may still use
// them.
func (m *Manager) allocate(ctx context.Context, pod *corev1.Pod, c *corev1.Container, resource string, count int,
	near cm.Nodes) error {
	m.mu.Lock()
	k := m.resources[resource]
	if has := m.pods[pod.UID][c.Name][resource]; has != nil {
		defer m.mu.Unlock()
		return k.keeps(pod, c, resource, has, count)
	}
	w := wanted{count: count, near: near, again: m.reusable(pod, c, resource), free: k.healthy()}
	taken := m.taken(resource)
	for id := range w.free {
		if taken[id] {
			delete(w.free, id)
		}
	}
	p, devices := k.plugin, k.devices
	m.mu.Unlock()
	var asked error
	// choose calls the function at most once, for the devices among which it has a choice. Its error is kept in asked,
	// because choose goes on without a preference, and an error must refuse the pod.
	ids, ok := choose(w, func(available, must []string, count int) (ids []string) {
		if p == nil || !p.options.GetGetPreferredAllocationAvailable() {
			return nil
		}
		ids, asked = p.ask(ctx, available, must, count)
		return ids
	})
	if asked != nil {
		return asked
	}
	if !ok {
		return fmt.Errorf("requested number of devices unavailable for %s. Requested: %d, Available: %d", resource,
			count, len(w.again)+len(w.free))
	}
	a := &allocation{ids: ids, nodes: map[string]cm.Nodes{}}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids { // the plug-in may have gone meanwhile, which marks them all
		a.nodes[id] = devices[id].nodes
	}
	m.give(pod.UID, c.Name, resource, a)
	return nil
}

// give records what a container has. The caller holds mu.
func (m *Manager) give(uid types.UID, container, resource string, a *allocation) {
	if m.pods[uid] == nil {
		m.pods[uid] = map[string]map[string]*allocation{}
	}
	if m.pods[uid][container] == nil {
		m.pods[uid][container] = map[string]*allocation{}
	}
	m.pods[uid][container][resource] = a
}

// keeps returns why a container cannot start again with the devices that it has; nil if it can.
func (k *kind) keeps(pod *corev1.Pod, c *corev1.Container, resource string, has *allocation, count int) error {
	if len(has.ids) != count {
		return fmt.Errorf("pod %q container %q changed request for resource %q from %d to %d", pod.UID, c.Name,
			resource, len(has.ids), count)
	}
	healthy := k.healthy()
	if len(healthy) == 0 {
		return fmt.Errorf("no healthy devices present; cannot allocate unhealthy devices %s", resource)
	}
	for _, id := range has.ids {
		if _, ok := healthy[id]; !ok {
			return fmt.Errorf("previously allocated devices are no longer healthy; cannot allocate unhealthy devices %s", resource)
		}
	}
	return nil
}

// taken returns the devices of a resource that containers have. The caller holds mu. It looks through all pods each
// time: there is no second record of free devices that could disagree after a crash.
func (m *Manager) taken(resource string) map[string]bool {
	out := map[string]bool{}
	for _, containers := range m.pods {
		for _, has := range containers {
			if a := has[resource]; a != nil {
				for _, id := range a.ids {
					out[id] = true
				}
			}
		}
	}
	return out
}

// reusable returns the healthy devices of init containers that have ended when c runs and that no container has that
// runs at the same time. The caller holds mu. Containers are looked at in their order, up to c. An init container adds
// its devices. A sidecar, which goes on to run, or a container beside c takes out what it has.
func (m *Manager) reusable(pod *corev1.Pod, c *corev1.Container, resource string) map[string]bool {
	out, healthy := map[string]bool{}, m.resources[resource].healthy()
	before := func(list []corev1.Container, inits bool) bool {
		for i := range list {
			if list[i].Name == c.Name {
				return true
			}
			a := m.pods[pod.UID][list[i].Name][resource]
			if a == nil {
				continue
			}
			for _, id := range a.ids {
				if _, ok := healthy[id]; ok && inits && !podspec.IsSidecar(&list[i]) {
					out[id] = true
				} else {
					delete(out, id)
				}
			}
		}
		return false
	}
	if !before(pod.Spec.InitContainers, true) {
		before(pod.Spec.Containers, false)
	}
	return out
}

// Confirm implements cm.Allocator: it asks the plug-ins how the devices get into the containers, and stores that.
// Devices without that answer are not on the disk: after a restart of the kubelet the pod is admitted again. Admit
// calls it after all allocators have agreed, and without their common lock: an Allocate may take allocateTimeout, and
// other pods must not wait for it. It writes the file once for the pod. If that fails, the pod is refused, because
// after a crash others could get its devices.
func (m *Manager) Confirm(ctx context.Context, pod *corev1.Pod) error {
	asked := false
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			did, err := m.confirm(ctx, pod.UID, list[i].Name)
			if err != nil {
				return err
			}
			asked = asked || did
		}
	}
	if !asked {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.save()
}

// confirm asks the plug-ins about one container's devices that they were not asked about yet. An answer stays if a
// later plug-in fails; Admit then releases the whole pod. Devices without plug-in fail at once and are not waited for.
func (m *Manager) confirm(ctx context.Context, uid types.UID, container string) (asked bool, err error) {
	m.mu.Lock()
	todo := map[string]*allocation{}
	plugins := map[string]*plugin{}
	for resource, a := range m.pods[uid][container] {
		if a.response == nil {
			todo[resource], plugins[resource] = a, m.resources[resource].plugin
		}
	}
	m.mu.Unlock()
	for _, resource := range sortedKeys(todo) {
		p := plugins[resource]
		if p == nil {
			return asked, fmt.Errorf("the device plug-in of %s is gone", resource)
		}
		begun := m.cfg.Now()
		r, err := p.allocate(ctx, todo[resource].ids)
		if err != nil {
			return asked, err
		}
		m.cfg.Metrics.DevicesAllocated(resource, m.cfg.Now().Sub(begun))
		m.mu.Lock()
		todo[resource].response = r
		m.mu.Unlock()
		asked = true
	}
	return asked, nil
}

// Release implements cm.Allocator. It may be called several times, and only the first call writes. If the write fails,
// the devices are free in memory. After a restart the file names the pod still, until Unprepare or the next write
// removes it.
func (m *Manager) Release(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pods[uid] == nil {
		return
	}
	delete(m.pods, uid)
	if err := m.save(); err != nil {
		m.cfg.Log.Warn("devices that are free are not kept as such for a restart", "uid", uid, "err", err)
	}
}

// Hints implements cm.Allocator. It decides nothing: Allocate runs right after it, under the same lock of cm.Manager,
// with the nodes that all hints agree on.
func (m *Manager) Hints(pod *corev1.Pod, c *corev1.Container) map[string][]cm.Hint {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string][]cm.Hint{}
	for resource, count := range m.wants(c) {
		if hints, near := m.hints(pod, resource, count, m.pods[pod.UID][c.Name][resource],
			m.reusable(pod, c, resource)); near {
			out[resource] = hints
		}
	}
	return out
}

// PodHints implements cm.Allocator: what all containers want that run at the same time.
func (m *Manager) PodHints(pod *corev1.Pod) map[string][]cm.Hint {
	m.mu.Lock()
	defer m.mu.Unlock()
	most := map[string]int{}
	for resource := range m.resources {
		beside, init := 0, 0
		for i := range pod.Spec.InitContainers {
			c := &pod.Spec.InitContainers[i]
			n := m.wants(c)[resource]
			if podspec.IsSidecar(c) {
				beside += n
				n = 0
			}
			init = max(init, beside+n)
		}
		for i := range pod.Spec.Containers {
			beside += m.wants(&pod.Spec.Containers[i])[resource]
		}
		if n := max(beside, init); n > 0 {
			most[resource] = n
		}
	}
	out := map[string][]cm.Hint{}
	for resource, count := range most {
		if hints, near := m.hints(pod, resource, count, nil, nil); near {
			out[resource] = hints
		}
	}
	return out
}

// hints returns the sets of NUMA nodes that can give so many devices; false if none of the resource's devices is near
// to a node. has are those that the container already has; again are those that it can have although other containers
// of its pod have them. The caller holds mu.
func (m *Manager) hints(pod *corev1.Pod, resource string, count int, has *allocation, again map[string]bool) ([]cm.Hint,
	bool) {
	k := m.resources[resource]
	near := false
	for _, d := range k.devices {
		near = near || d.nodes != 0
	}
	if !near {
		return nil, false
	}
	taken := m.taken(resource)
	count = min(count, maxDevices)
	own := func(id string) bool {
		if has != nil {
			return slices.Contains(has.ids, id)
		}
		return again[id] || !taken[id] || m.ofPod(pod.UID, resource, id) && again == nil
	}
	counter := func(usable func(id string, d device) bool) func(cm.Nodes) int {
		return func(n cm.Nodes) (sum int) {
			for id, d := range k.devices {
				if (d.nodes == 0 || d.nodes&n != 0) && usable(id, d) {
					sum++
				}
			}
			return sum
		}
	}
	return cm.HintsFor(m.cfg.Nodes, count, counter(func(string, device) bool { return true }),
		counter(func(id string, d device) bool { return d.healthy && own(id) })), true
}

// ofPod reports whether a container of the pod has a device. The caller holds mu.
func (m *Manager) ofPod(uid types.UID, resource, id string) bool {
	for _, has := range m.pods[uid] {
		if a := has[resource]; a != nil && slices.Contains(a.ids, id) {
			return true
		}
	}
	return false
}
