// Package memory gives containers memory and huge pages of chosen NUMA nodes, the memory manager
// (https://kubernetes.io/docs/tasks/administer-cluster/memory-manager/). With the static policy, each container of a
// Guaranteed pod has its requests set aside on one NUMA node, or on several that then form a group, and runs with the
// memory of these alone. Pure functions (state.go) choose the nodes when the pod is admitted. With the policy None the
// manager does nothing. What pods have is kept on the disk.
package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/utils/cpuset"

	"bonsai/api/podspec"
	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/runtime"
)

// Policies.
const (
	None   = "None"
	Static = "Static"
)

// Metrics counts.
type Metrics interface {
	// MemoryPinned counts a container that was to get memory of chosen NUMA nodes.
	MemoryPinned(err error)
}

// Settings are what the user chose.
type Settings struct {
	// Policy is None (default) or Static.
	Policy string
	// Reserved is what is kept from containers, by NUMA node.
	Reserved Reserved
}

// Config is what a Manager needs. Everything is required.
type Config struct {
	Settings
	// RootDir is the kubelet's directory, which has the state file.
	RootDir string
	Machine cm.Machine
	Metrics Metrics
	Log     *slog.Logger
}

// Manager knows the NUMA nodes that each container has memory from. It is safe for concurrent use; mu guards given.
type Manager struct {
	cfg   Config
	file  cm.StateFile
	empty NUMANodeMap

	mu    sync.Mutex
	given ContainerMemoryAssignments
}

var (
	_ cm.Allocator         = (*Manager)(nil)
	_ cm.ContainerProvider = (*Manager)(nil)
	_ cm.Resizer           = (*Manager)(nil)
)

// New reads what pods had before a restart of the kubelet. It fails if that was under another policy or with other
// memory.
func New(cfg Config) (*Manager, error) {
	m := &Manager{cfg: cfg, file: cm.StateFile{Dir: cfg.RootDir, Name: "memory_manager_state"},
		given: ContainerMemoryAssignments{}}
	if cfg.Policy == Static {
		var err error
		if m.empty, err = stateOf(cfg.Machine, cfg.Reserved); err != nil {
			return nil, fmt.Errorf("memory manager: %w", err)
		}
	}
	if err := m.load(); err != nil {
		return nil, fmt.Errorf("memory manager: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m, m.save()
}

// state returns the machine with what is given. The caller holds mu. What is given always fits, because it was taken
// from what fits.
func (m *Manager) state() NUMANodeMap {
	s, err := m.empty.with(m.given)
	if err != nil {
		m.cfg.Log.Error("memory is given that is not there", "err", err)
		return NUMANodeMap{}
	}
	return s
}

// wants returns what a container is to get from chosen nodes, nothing if it needs none.
func (m *Manager) wants(pod *corev1.Pod, c *corev1.Container) demand {
	if m.cfg.Policy != Static || runtime.QOSClass(pod) != corev1.PodQOSGuaranteed ||
		resourcehelper.IsPodLevelResourcesSet(pod) {
		return nil
	}
	d := demand{}
	for name, q := range c.Resources.Requests {
		if n := q.Value(); n > 0 &&
			(name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)) {
			d[name] = uint64(n)
		}
	}
	return d
}

// Wants implements cm.Allocator.
func (m *Manager) Wants(pod *corev1.Pod) bool {
	wants := func(c corev1.Container) bool { return len(m.wants(pod, &c)) > 0 }
	return slices.ContainsFunc(pod.Spec.InitContainers, wants) || slices.ContainsFunc(pod.Spec.Containers, wants)
}

// Allocate implements cm.Allocator.
func (m *Manager) Allocate(_ context.Context, pod *corev1.Pod, c *corev1.Container, near cm.Nodes) error {
	d := m.wants(pod, c)
	if len(d) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	uid := string(pod.UID)
	if _, has := m.given[uid][c.Name]; has {
		return nil
	}
	nodes, ok := m.state().choose(near, d, m.again(pod, c))
	if !ok {
		err := errors.New("[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available")
		if near != 0 {
			err = errors.New("[memorymanager] failed to find NUMA nodes to extend the current topology hint")
		}
		m.cfg.Metrics.MemoryPinned(err)
		return err
	}
	m.cfg.Metrics.MemoryPinned(nil)
	if m.given[uid] == nil {
		m.given[uid] = map[string][]Block{}
	}
	for _, kind := range slices.Sorted(maps.Keys(d)) {
		m.reuse(pod, c, nodes, kind, d[kind])
		m.given[uid][c.Name] = append(m.given[uid][c.Name], Block{NUMAAffinity: nodes.IDs(), Type: kind, Size: d[kind]})
	}
	return nil
}

// earlier calls f with the name of each init container that has ended when c runs.
func earlier(pod *corev1.Pod, c *corev1.Container, f func(name string)) {
	for i := range pod.Spec.InitContainers {
		init := &pod.Spec.InitContainers[i]
		if init.Name == c.Name {
			return
		}
		if !podspec.IsSidecar(init) {
			f(init.Name)
		}
	}
}

// again returns the blocks that c may use a second time. The caller holds mu.
func (m *Manager) again(pod *corev1.Pod, c *corev1.Container) (out []Block) {
	earlier(pod, c, func(name string) { out = append(out, m.given[string(pod.UID)][name]...) })
	return out
}

// reuse moves to c what it gets from the blocks of ended init containers, so that nothing is counted twice. The caller
// holds mu.
func (m *Manager) reuse(pod *corev1.Pod, c *corev1.Container, nodes cm.Nodes, kind corev1.ResourceName, size uint64) {
	earlier(pod, c, func(name string) {
		blocks := m.given[string(pod.UID)][name]
		for i := range blocks {
			if blocks[i].Type == kind && cm.NodesOf(blocks[i].NUMAAffinity...) == nodes {
				some := min(size, blocks[i].Size)
				blocks[i].Size, size = blocks[i].Size-some, size-some
			}
		}
	})
}

// Confirm implements cm.Allocator: it stores what was given.
func (m *Manager) Confirm(_ context.Context, pod *corev1.Pod) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.given[string(pod.UID)] == nil {
		return nil
	}
	return m.save()
}

// Release implements cm.Allocator.
func (m *Manager) Release(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.given[string(uid)] == nil {
		return
	}
	delete(m.given, string(uid))
	if err := m.save(); err != nil {
		m.cfg.Log.Warn("memory that is free is not kept as such for a restart", "uid", uid, "err", err)
	}
}

// Hints implements cm.Allocator. A container keeps what it already has.
func (m *Manager) Hints(pod *corev1.Pod, c *corev1.Container) map[string][]cm.Hint {
	d := m.wants(pod, c)
	if len(d) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if has := m.given[string(pod.UID)][c.Name]; len(has) > 0 {
		return kept(has)
	}
	return m.state().hints(d, m.again(pod, c))
}

// PodHints implements cm.Allocator, for all containers that run at the same time.
func (m *Manager) PodHints(pod *corev1.Pod) map[string][]cm.Hint {
	d := m.podWants(pod)
	if len(d) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, has := range m.given[string(pod.UID)] {
		return kept(has)
	}
	return m.state().hints(d, nil)
}

// kept returns the hints that lead to what is already given.
func kept(has []Block) map[string][]cm.Hint {
	out := map[string][]cm.Hint{}
	for _, b := range has {
		out[string(b.Type)] = []cm.Hint{{Nodes: cm.NodesOf(b.NUMAAffinity...), Preferred: true}}
	}
	return out
}

// podWants returns the most that a pod's containers use at the same time.
func (m *Manager) podWants(pod *corev1.Pod) demand {
	beside, most := demand{}, demand{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		for kind, size := range m.wants(pod, c) {
			if podspec.IsSidecar(c) {
				beside[kind] += size
			} else {
				most[kind] = max(most[kind], beside[kind]+size)
			}
		}
	}
	for i := range pod.Spec.Containers {
		for kind, size := range m.wants(pod, &pod.Spec.Containers[i]) {
			beside[kind] += size
		}
	}
	for kind, size := range beside {
		most[kind] = max(most[kind], size)
	}
	return most
}

// MayResize implements cm.Resizer.
func (m *Manager) MayResize(pod *corev1.Pod, _ runtime.Resources) string {
	if m.cfg.Policy == Static && runtime.QOSClass(pod) == corev1.PodQOSGuaranteed {
		return "Resize is infeasible for Guaranteed Pods alongside Memory Manager static policy"
	}
	return ""
}

// Container implements cm.ContainerProvider.
func (m *Manager) Container(pod *corev1.Pod, c *corev1.Container, o *runtime.ContainerOptions) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var nodes cm.Nodes
	for _, b := range m.given[string(pod.UID)][c.Name] {
		nodes |= cm.NodesOf(b.NUMAAffinity...)
	}
	if nodes != 0 {
		o.MemoryNodes = cpuset.New(nodes.IDs()...).String()
	}
	return nil
}

// Unprepare implements cm.Provider.
func (m *Manager) Unprepare(_ context.Context, uid types.UID) error {
	m.Release(uid)
	return nil
}

// Prepared implements cm.Provider.
func (m *Manager) Prepared() ([]types.UID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []types.UID
	for uid := range m.given {
		out = append(out, types.UID(uid))
	}
	return out, nil
}

// Held implements cm.Holder.
func (m *Manager) Held(pod *corev1.Pod) map[string]*podresourcesapi.ContainerResources {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]*podresourcesapi.ContainerResources{}
	for name, blocks := range m.given[string(pod.UID)] {
		c := &podresourcesapi.ContainerResources{}
		for _, b := range blocks {
			c.Memory = append(c.Memory,
				&podresourcesapi.ContainerMemory{MemoryType: string(b.Type), Size: b.Size,
					Topology: cm.NodesOf(b.NUMAAffinity...).Topology()})
		}
		out[name] = c
	}
	return out
}

// Holdings implements cm.Holder.
func (m *Manager) Holdings() *podresourcesapi.AllocatableResourcesResponse {
	out := &podresourcesapi.AllocatableResourcesResponse{}
	for _, id := range slices.Sorted(maps.Keys(m.empty)) {
		for _, kind := range slices.Sorted(maps.Keys(m.empty[id].MemoryMap)) {
			if size := m.empty[id].MemoryMap[kind].Allocatable; size > 0 {
				out.Memory = append(out.Memory,
					&podresourcesapi.ContainerMemory{MemoryType: string(kind), Size: size,
						Topology: cm.NodesOf(id).Topology()})
			}
		}
	}
	return out
}
