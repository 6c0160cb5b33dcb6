// Package cpu gives containers CPUs that no other container runs on, the CPU manager
// (https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/). With the static policy a container of
// a Guaranteed pod that requests a whole number of CPUs gets that many for itself; a pure function (take.go) chooses
// them when the pod is admitted. All other containers share the rest, which shrinks and grows while they run
// (reconcile.go). With the policy none the manager does nothing. What pods have is kept on the disk.
package cpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/utils/cpuset"

	"bonsai/api/podspec"
	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/runtime"
)

// Policies.
const (
	None   = "none"
	Static = "static"
)

// Metrics counts.
type Metrics interface {
	// CPUsPinned counts a container that was to get CPUs of its own.
	CPUsPinned(err error)
	// CPUs receives how many CPUs are shared, and how many containers have for themselves.
	CPUs(shared, exclusive int)
}

// Settings are what the user chose.
type Settings struct {
	// Policy is none (default) or static.
	Policy string
	Options
	// Reserved are CPUs that no container gets for itself; if none are named, ReservedCount of them are chosen.
	Reserved      cpuset.CPUSet
	ReservedCount int
	// Period is how often containers' CPUs are compared with what they should have.
	Period time.Duration
}

// Config is what a Manager needs. Everything is required.
type Config struct {
	Settings
	// RootDir is the kubelet's directory, which has the state file.
	RootDir string
	Machine cm.Machine
	Runtime Runtime
	// Pods are those whose containers may run.
	Pods    func() []*corev1.Pod
	Metrics Metrics
	Log     *slog.Logger
}

// Manager knows which container has which CPUs. It is safe for concurrent use; mu guards given.
type Manager struct {
	cfg      Config
	file     cm.StateFile
	reserved cpuset.CPUSet
	all      cpuset.CPUSet
	changed  notify.Signal

	mu    sync.Mutex
	given map[types.UID]map[string]cpuset.CPUSet
}

// Check returns what is wrong with the settings.
func (s Settings) Check() error {
	switch {
	case s.Policy != None && s.Policy != Static:
		return fmt.Errorf("unknown policy: %q", s.Policy)
	case s.Policy == Static && s.Reserved.IsEmpty() && s.ReservedCount == 0:
		return errors.New("the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero")
	}
	return nil
}

// New reads what pods had before a restart of the kubelet. It fails if that was under another policy or with other
// CPUs: guessing would let two containers run on one CPU that each has for itself.
func New(cfg Config) (*Manager, error) {
	m := &Manager{cfg: cfg, file: cm.StateFile{Dir: cfg.RootDir, Name: "cpu_manager_state"},
		all: cfg.Machine.Set(func(cm.CPU) bool {
			return true
		}),
		changed: notify.New(), given: map[types.UID]map[string]cpuset.CPUSet{}}
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("CPU manager: %w", err)
	}
	if cfg.Policy == Static {
		m.reserved = cfg.Reserved
		if m.reserved.IsEmpty() {
			var ok bool
			if m.reserved, ok = take(cfg.Machine, m.all, cfg.ReservedCount, Options{}); !ok {
				return nil, fmt.Errorf("CPU manager: unable to reserve the required amount of CPUs (size of %s did not equal %d)", m.all, cfg.ReservedCount)
			}
		}
		if !m.reserved.IsSubsetOf(m.all) {
			return nil, fmt.Errorf("CPU manager: the reserved CPUs %s are not all of the machine's %s", m.reserved,
				m.all)
		}
	}
	if err := m.load(); err != nil {
		return nil, fmt.Errorf("CPU manager: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m, m.save()
}

// shared returns the CPUs of the containers that have none for themselves. The caller holds mu.
func (m *Manager) shared() cpuset.CPUSet {
	out := m.all
	for _, containers := range m.given {
		for _, s := range containers {
			out = out.Difference(s)
		}
	}
	if m.cfg.strictReservation {
		out = out.Difference(m.reserved)
	}
	return out
}

// wants returns how many CPUs a container is to get for itself, 0 for none.
func (m *Manager) wants(pod *corev1.Pod, c *corev1.Container) int {
	if m.cfg.Policy != Static || runtime.QOSClass(pod) != corev1.PodQOSGuaranteed ||
		resourcehelper.IsPodLevelResourcesSet(pod) {
		return 0
	}
	q := c.Resources.Requests[corev1.ResourceCPU]
	if q.Value()*1000 != q.MilliValue() {
		return 0
	}
	return int(q.Value())
}

var (
	_ cm.Allocator         = (*Manager)(nil)
	_ cm.ContainerProvider = (*Manager)(nil)
	_ cm.Resizer           = (*Manager)(nil)
)

// Wants implements cm.Allocator.
func (m *Manager) Wants(pod *corev1.Pod) bool {
	wants := func(c corev1.Container) bool { return m.wants(pod, &c) > 0 }
	return slices.ContainsFunc(pod.Spec.InitContainers, wants) || slices.ContainsFunc(pod.Spec.Containers, wants)
}

// Allocate implements cm.Allocator.
func (m *Manager) Allocate(_ context.Context, pod *corev1.Pod, c *corev1.Container, near cm.Nodes) error {
	n := m.wants(pod, c)
	if n == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, has := m.given[pod.UID][c.Name]; has {
		return nil
	}
	err := m.allocate(pod, c, n, near)
	m.cfg.Metrics.CPUsPinned(err)
	return err
}

func (m *Manager) allocate(pod *corev1.Pod, c *corev1.Container, n int, near cm.Nodes) error {
	again := m.reusable(pod, c)
	free := m.shared().Difference(m.reserved).Union(again)
	if per := m.cfg.Machine.PerCore(); m.cfg.fullPCPUsOnly {
		if n%per != 0 {
			return &cm.Refusal{Reason: "SMTAlignmentError",
				Message: fmt.Sprintf("SMT Alignment Error: requested %d cpus not multiple cpus per core = %d", n, per)}
		}
		if whole := m.wholeCores(free); whole.Size() < n {
			return &cm.Refusal{Reason: "SMTAlignmentError",
				Message: fmt.Sprintf("SMT Alignment Error: not enough free physical CPUs: available physical CPUs = %d, requested CPUs = %d, CPUs per core = %d", whole.Size(), n, per)}
		}
	}
	if free.Size() < n {
		return fmt.Errorf("not enough cpus available to satisfy request: requested=%d, available=%d", n, free.Size())
	}
	// Take first those of init containers that have ended, then those near to the nodes, then any.
	out := cpuset.New()
	for _, from := range []cpuset.CPUSet{again, m.near(free, near), free} {
		if m.cfg.fullPCPUsOnly {
			from = m.wholeCores(from)
		}
		from = from.Difference(out)
		if some, ok := take(m.cfg.Machine, from, min(n-out.Size(), from.Size()), m.cfg.Options); ok {
			out = out.Union(some)
		}
	}
	if m.given[pod.UID] == nil {
		m.given[pod.UID] = map[string]cpuset.CPUSet{}
	}
	m.given[pod.UID][c.Name] = out
	return nil
}

// near returns the free CPUs that are on the nodes; all of them if no nodes are chosen.
func (m *Manager) near(free cpuset.CPUSet, nodes cm.Nodes) cpuset.CPUSet {
	if nodes == 0 {
		return free
	}
	return free.Intersection(m.cfg.Machine.On(nodes))
}

// wholeCores returns those of the CPUs whose cores are in the set with all their threads.
func (m *Manager) wholeCores(of cpuset.CPUSet) cpuset.CPUSet {
	out := cpuset.New()
	for _, core := range m.cfg.Machine.Group(m.all, byCore) {
		if core.IsSubsetOf(of) {
			out = out.Union(core)
		}
	}
	return out
}

// reusable returns the CPUs of init containers that have ended when c runs and that no container has that runs at the
// same time. The caller holds mu.
func (m *Manager) reusable(pod *corev1.Pod, c *corev1.Container) cpuset.CPUSet {
	out := cpuset.New()
	for i := range pod.Spec.InitContainers {
		init := &pod.Spec.InitContainers[i]
		if init.Name == c.Name {
			return out
		}
		if has := m.given[pod.UID][init.Name]; podspec.IsSidecar(init) {
			out = out.Difference(has)
		} else {
			out = out.Union(has)
		}
	}
	for i := range pod.Spec.Containers {
		if name := pod.Spec.Containers[i].Name; name != c.Name {
			out = out.Difference(m.given[pod.UID][name])
		}
	}
	return out
}

// Confirm implements cm.Allocator: it stores what was given, and lets Run take it away from the other containers.
func (m *Manager) Confirm(_ context.Context, pod *corev1.Pod) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.given[pod.UID] == nil {
		return nil
	}
	m.changed.Notify()
	return m.save()
}

// Release implements cm.Allocator.
func (m *Manager) Release(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.given[uid] == nil {
		return
	}
	delete(m.given, uid)
	m.changed.Notify()
	if err := m.save(); err != nil {
		m.cfg.Log.Warn("CPUs that are free are not kept as such for a restart", "uid", uid, "err", err)
	}
}

// Hints implements cm.Allocator.
func (m *Manager) Hints(pod *corev1.Pod, c *corev1.Container) map[string][]cm.Hint {
	n := m.wants(pod, c)
	if n == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	free := m.shared().Difference(m.reserved).Union(m.reusable(pod, c))
	if has, ok := m.given[pod.UID][c.Name]; ok {
		free = has
	}
	return map[string][]cm.Hint{string(corev1.ResourceCPU): m.hints(n, free)}
}

// PodHints implements cm.Allocator, for all containers that run at the same time.
func (m *Manager) PodHints(pod *corev1.Pod) map[string][]cm.Hint {
	beside, init := 0, 0
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		n := m.wants(pod, c)
		if podspec.IsSidecar(c) {
			beside, n = beside+n, 0
		}
		init = max(init, beside+n)
	}
	for i := range pod.Spec.Containers {
		beside += m.wants(pod, &pod.Spec.Containers[i])
	}
	n := max(beside, init)
	if n == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	free := m.shared().Difference(m.reserved)
	for _, has := range m.given[pod.UID] {
		free = free.Union(has)
	}
	return map[string][]cm.Hint{string(corev1.ResourceCPU): m.hints(n, free)}
}

func (m *Manager) hints(n int, free cpuset.CPUSet) []cm.Hint {
	if m.cfg.fullPCPUsOnly {
		free = m.wholeCores(free)
	}
	on := func(of cpuset.CPUSet) func(cm.Nodes) int {
		return func(nodes cm.Nodes) int { return of.Intersection(m.cfg.Machine.On(nodes)).Size() }
	}
	return cm.HintsFor(m.cfg.Machine.Nodes(), n, on(m.all), on(free))
}

// MayResize implements cm.Resizer.
func (m *Manager) MayResize(pod *corev1.Pod, _ runtime.Resources) string {
	if m.cfg.Policy == Static && runtime.QOSClass(pod) == corev1.PodQOSGuaranteed {
		return "Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy"
	}
	return ""
}

// Container implements cm.ContainerProvider.
func (m *Manager) Container(pod *corev1.Pod, c *corev1.Container, o *runtime.ContainerOptions) error {
	o.CPUs, o.NoCPUQuota = m.cpus(pod.UID, c.Name), m.noQuota(pod.UID, c.Name)
	return nil
}

// NoQuota reports whether the pod is to have no quota of CPU: one of its containers has none. The quota of the pod
// would throttle it, too. The pod's containers on the shared CPUs keep their own.
func (m *Manager) NoQuota(pod *corev1.Pod) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.given[pod.UID]) > 0
}

// noQuota reports whether a container is to have no quota of CPU: it has its CPUs for itself.
func (m *Manager) noQuota(uid types.UID, container string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, own := m.given[uid][container]
	return own
}

// cpus returns the CPUs that a container may run on; "" for all, as with the policy none.
func (m *Manager) cpus(uid types.UID, container string) string {
	if m.cfg.Policy != Static {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if own, has := m.given[uid][container]; has {
		return own.String()
	}
	return m.shared().String()
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
	return slices.Collect(maps.Keys(m.given)), nil
}

// Held implements cm.Holder: it returns the CPUs that containers have for themselves.
func (m *Manager) Held(pod *corev1.Pod) map[string]*podresourcesapi.ContainerResources {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]*podresourcesapi.ContainerResources{}
	for name, s := range m.given[pod.UID] {
		out[name] = &podresourcesapi.ContainerResources{CpuIds: numbers(s)}
	}
	return out
}

// Holdings implements cm.Holder.
func (m *Manager) Holdings() *podresourcesapi.AllocatableResourcesResponse {
	return &podresourcesapi.AllocatableResourcesResponse{CpuIds: numbers(m.all.Difference(m.reserved))}
}

func numbers(s cpuset.CPUSet) (out []int64) {
	for _, id := range s.List() {
		out = append(out, int64(id))
	}
	return out
}
