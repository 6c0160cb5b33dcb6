// Package devices gives containers the devices of device plug-ins
// (https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/). A plug-in registers for
// one extended resource, and sends in a stream which devices it has and whether they are healthy: that is the node's
// amount of the resource. Which devices a container gets is decided when its pod is admitted (choose.go, a pure
// function) and kept on the disk. The pod has them until its containers have ended, even while the plug-in or the
// kubelet is away.
package devices

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"bonsai/pkg/kubelet/cm"
)

// Bounds on what plug-ins may send, in number and bytes, and how long they may take.
const (
	maxResources = 256
	maxDevices   = 16384
	maxMessage   = 4 << 20
	maxID        = 1024
	// callTimeout bounds a question, allocateTimeout an Allocate; PreStartContainer has upstream's bound.
	callTimeout     = 10 * time.Second
	allocateTimeout = time.Minute
	// keepGone is how long a resource is shown after its plug-in is gone: with its capacity, and none of it
	// allocatable.
	keepGone = 5 * time.Minute
)

// Metrics counts.
type Metrics interface {
	// PluginRegistered counts a registration.
	PluginRegistered(resource string)
	// DevicesAllocated receives how long an Allocate of a plug-in took.
	DevicesAllocated(resource string, took time.Duration)
}

// Config is what a Manager needs. Everything is required.
type Config struct {
	// RootDir is the kubelet's. Plug-ins' sockets are in device-plugins below it, or wherever else below it the plug-in
	// manager finds one.
	RootDir string
	// Nodes are the machine's NUMA nodes.
	Nodes cm.Nodes
	// Changed is called when the number of the node's devices changes, Wake when a pod's device becomes healthy or
	// unhealthy.
	Changed func()
	Wake    func(uid types.UID)
	Metrics Metrics
	Now     func() time.Time
	Log     *slog.Logger
}

// Manager knows the plug-ins and which pod has which device. It is safe for concurrent use. mu is never held during a
// call of a plug-in, which may hang.
type Manager struct {
	cfg  Config
	root *os.Root
	file cm.StateFile

	mu        sync.Mutex
	resources map[string]*kind
	pods      map[types.UID]map[string]map[string]*allocation // by container and resource
	// running is the context of the connections to plug-ins, set by Run.
	running context.Context
	streams sync.WaitGroup
}

// kind is one resource.
type kind struct {
	// plugin is nil while there is none, since goneAt.
	plugin *plugin
	goneAt time.Time
	// devices stay when the plug-in goes, and count as unhealthy then.
	devices map[string]device
}

// device is one device of a resource.
type device struct {
	healthy bool
	// nodes are the NUMA nodes that it is near to; none: it is near to all.
	nodes cm.Nodes
}

// allocation has the devices of one resource that a container has.
type allocation struct {
	ids []string // sorted
	// nodes are the NUMA nodes of the devices at the time of the allocation.
	nodes map[string]cm.Nodes
	// response says how the devices get into the container; nil until the plug-in was asked.
	response *pluginapi.ContainerAllocateResponse
}

// New reads what pods had before a restart of the kubelet.
func New(cfg Config) (*Manager, error) {
	dir := filepath.Join(cfg.RootDir, "device-plugins")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("make the directory of device plug-ins: %w", err)
	}
	root, err := os.OpenRoot(cfg.RootDir)
	if err != nil {
		return nil, fmt.Errorf("open the kubelet's directory: %w", err)
	}
	m := &Manager{cfg: cfg, root: root, file: cm.StateFile{Dir: dir, Name: "kubelet_internal_checkpoint"},
		resources: map[string]*kind{},
		pods:      map[types.UID]map[string]map[string]*allocation{}}
	if err := m.load(); err != nil {
		// Running pods keep their devices, but others may be given the same ones. That is the lesser evil: otherwise no
		// pod could run.
		cfg.Log.Warn("which devices pods had is not known any more", "err", err)
	}
	return m, nil
}

// Manages reports whether a resource is that of a plug-in.
func (m *Manager) Manages(name corev1.ResourceName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resources[string(name)] != nil
}

// Capacity returns how many devices the node has, and how many of them pods may have. A resource whose plug-in has been
// gone for keepGone has none.
func (m *Manager) Capacity() (capacity, allocatable corev1.ResourceList) {
	m.mu.Lock()
	defer m.mu.Unlock()
	capacity, allocatable = corev1.ResourceList{}, corev1.ResourceList{}
	for name, k := range m.resources {
		all, healthy := len(k.devices), len(k.healthy())
		if k.plugin == nil && m.cfg.Now().Sub(k.goneAt) >= keepGone {
			all = 0
		}
		capacity[corev1.ResourceName(name)] = *resource.NewQuantity(int64(all), resource.DecimalSI)
		allocatable[corev1.ResourceName(name)] = *resource.NewQuantity(int64(healthy), resource.DecimalSI)
	}
	return capacity, allocatable
}

// healthy returns the devices that can be given, by id.
func (k *kind) healthy() map[string]cm.Nodes {
	out := map[string]cm.Nodes{}
	for id, d := range k.devices {
		if d.healthy {
			out[id] = d.nodes
		}
	}
	return out
}

// update records a plug-in's list of devices, if the plug-in is still the resource's. It wakes the pods that have
// devices of the resource, because their health may have changed.
func (m *Manager) update(p *plugin, list []*pluginapi.Device) error {
	devices, err := devicesOf(list, m.cfg.Nodes)
	if err != nil {
		return err
	}
	m.mu.Lock()
	k := m.resources[p.resource]
	if k == nil || k.plugin != p {
		m.mu.Unlock()
		return nil
	}
	k.devices = devices
	woken := m.holders(p.resource)
	err = m.save()
	m.mu.Unlock()
	m.tell(woken)
	if err != nil {
		m.cfg.Log.Warn("the devices of a plug-in are not kept for a restart", "resource", p.resource, "err", err)
	}
	return nil
}

// gone is called when a plug-in's stream has ended.
func (m *Manager) gone(p *plugin) {
	m.mu.Lock()
	k := m.resources[p.resource]
	if k == nil || k.plugin != p {
		m.mu.Unlock()
		return
	}
	k.plugin, k.goneAt = nil, m.cfg.Now()
	for id, d := range k.devices {
		d.healthy = false
		k.devices[id] = d
	}
	woken := m.holders(p.resource)
	m.mu.Unlock()
	m.tell(woken)
}

// tell reports that the node's devices changed, and wakes pods that have some. It is called without the lock.
func (m *Manager) tell(pods []types.UID) {
	m.cfg.Changed()
	for _, uid := range pods {
		m.cfg.Wake(uid)
	}
}

// holders returns the pods that have devices of a resource. The caller holds mu.
func (m *Manager) holders(resource string) (out []types.UID) {
	for uid, containers := range m.pods {
		for _, has := range containers {
			if has[resource] != nil {
				out = append(out, uid)
				break
			}
		}
	}
	return out
}

// devicesOf converts a plug-in's list. It refuses a list beyond the bounds as a whole.
func devicesOf(list []*pluginapi.Device, known cm.Nodes) (map[string]device, error) {
	if len(list) > maxDevices {
		return nil, fmt.Errorf("%d devices are more than %d", len(list), maxDevices)
	}
	out := make(map[string]device, len(list))
	for _, d := range list {
		if d.GetID() == "" || len(d.ID) > maxID {
			return nil, fmt.Errorf("a device's ID has %d bytes, not 1 to %d", len(d.GetID()), maxID)
		}
		var near []int
		for _, n := range d.GetTopology().GetNodes() {
			near = append(near, int(n.GetID()))
		}
		out[d.ID] = device{healthy: d.Health == pluginapi.Healthy, nodes: cm.NodesOf(near...) & known}
	}
	return out, nil
}

// sortedKeys are a map's keys, sorted.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
