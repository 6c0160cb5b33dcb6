package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/cm/cpu"
	"bonsai/pkg/kubelet/cm/devices"
	"bonsai/pkg/kubelet/cm/dra"
	"bonsai/pkg/kubelet/cm/memory"
	"bonsai/pkg/kubelet/cm/podresources"
	"bonsai/pkg/kubelet/cm/userns"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/podsapi"
)

// The cgroups implement these interfaces without naming them, because siblings do not import siblings. cm.Manager looks
// for them at run time, so a signature that drifts would be ignored silently: this makes it a compile error.
var (
	_ cm.Preparer          = (*cgroup.Manager)(nil)
	_ cm.SandboxProvider   = (*cgroup.Manager)(nil)
	_ cm.ContainerProvider = (*cgroup.Manager)(nil)
	_ cm.Resizer           = (*cgroup.Manager)(nil)
)

// nodeParts are the Node object, and the managers that divide the machine among pods.
type nodeParts struct {
	devices *devices.Manager
	dra     *dra.Manager
	cpu     *cpu.Manager
	// resources calls the managers above, and the cgroups and user namespaces, for each pod.
	resources *cm.Manager
	// served is the pod-resources API, which shows what containers have.
	served *podresources.Server
	pods   *podsapi.Server
	node   *node.Node
}

// newNodeParts constructs the managers. Providers are in the order in which a pod gets what they have; cm.Manager takes
// it back in the opposite order.
func newNodeParts(cfg *Config, r reporting, s signals, c *containers) (*nodeParts, error) {
	n := &nodeParts{cpu: c.cpus}
	var err error
	if n.devices, err = devices.New(devices.Config{RootDir: cfg.RootDir, Nodes: cfg.Machine.Nodes(),
		Changed: s.node.Notify, Wake: s.workers.Wake,
		Metrics: r.metrics, Now: time.Now, Log: cfg.Log}); err != nil {
		return nil, err
	}
	if n.dra, err = dra.New(dra.Config{RootDir: cfg.RootDir, Node: cfg.NodeName, Client: cfg.Client,
		Wake:    s.workers.Wake,
		Metrics: r.metrics, Now: time.Now, Log: cfg.Log}); err != nil {
		return nil, err
	}
	memories, err := memory.New(memory.Config{Settings: cfg.Memory, RootDir: cfg.RootDir, Machine: cfg.Machine,
		Metrics: r.metrics, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	users, err := userns.New(userns.Config{PodsDir: cfg.podsDir(), Ranges: cfg.Users})
	if err != nil {
		return nil, err
	}
	// The nodes are read from the machine and not configured.
	topology := cfg.Topology
	topology.Nodes, topology.Distances = cfg.Machine.Nodes(), cfg.Machine.Distances
	// The cgroups come first: the pod's cgroup must exist before anything is put into it.
	n.resources = &cm.Manager{Providers: []cm.Provider{c.cgroups, users, n.devices, n.dra, n.cpu, memories},
		Topology: topology, Metrics: r.metrics, Event: r.events.Pod, Log: cfg.Log}
	// The API serves monitoring agents on the node, over a socket below RootDir.
	n.served = &podresources.Server{RootDir: cfg.RootDir, Resources: n.resources, Pods: s.active,
		Count: r.metrics.PodResourcesAsked}
	n.pods = &podsapi.Server{RootDir: cfg.RootDir, Serve: cm.ServeLimited, Pods: s.pods.Pods,
		Changes: r.status.Changed(), Count: r.metrics.PodsAsked}
	if n.node, err = newNode(cfg, r, s, c, n.devices); err != nil {
		return nil, fmt.Errorf("prepare the node object: %w", err)
	}
	return n, nil
}

// newNode completes the configuration of the Node with functions that read the other parts. They are called from the
// node's own goroutines and must not block for long: a node that does not report is taken for dead.
func newNode(cfg *Config, r reporting, s signals, c *containers, d *devices.Manager) (*node.Node, error) {
	x := cfg.Node
	x.Client, x.Name, x.Runtime, x.Log, x.Now = cfg.Client, cfg.NodeName, c.cri, cfg.Log, time.Now
	x.Images = func(ctx context.Context) ([]corev1.ContainerImage, error) {
		list, err := c.cri.Images(ctx)
		return images.Named(list), err
	}
	// The conditions are read under their own lock; the eviction manager sets them and then notifies the node
	// (Changed).
	x.Pressure = func() node.Pressure {
		return node.Pressure{Memory: s.pressure.Under(corev1.NodeMemoryPressure),
			Disk: s.pressure.Under(corev1.NodeDiskPressure),
			PID:  s.pressure.Under(corev1.NodePIDPressure)}
	}
	x.Changed, x.Down, x.Relisted, x.Devices = s.node, s.shutdown.Err, c.relist.Healthy, d.Capacity
	x.VolumesInUse, x.Startup = cfg.csiRecords().InUse, r.metrics
	return node.New(x)
}
