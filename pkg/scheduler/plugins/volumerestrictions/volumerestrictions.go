// Package volumerestrictions keeps pods apart that may not use a volume at the same time: on one node, disks of some
// kinds; anywhere, claims that are for one pod alone (ReadWriteOncePod).
package volumerestrictions

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/volumes"
)

// name of the plug-in.
const name = "VolumeRestrictions"

// Reasons why a node is refused.
const (
	ReasonDisk    = "node(s) had no available disk"
	ReasonOncePod = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

// Plugin is the VolumeRestrictions plug-in. It looks at the pods of all nodes, and is slow for the pods that it
// concerns.
type Plugin struct{ Volumes *volumes.Volumes }

var (
	_ framework.PreFilter           = Plugin{}
	_ framework.PreFilterExtensions = Plugin{}
	_ framework.Filter              = Plugin{}
	_ framework.Selective           = Plugin{}
	_ framework.Interested          = Plugin{}
)

// Name is the plug-in's name.
func (Plugin) Name() string { return name }

// Concerns implements framework.Selective: pods with such disks or claims.
func (p Plugin) Concerns(pod *model.PodInfo) bool {
	return len(pod.Disks) > 0 || len(p.alone(pod)) > 0
}

// alone returns the names of the pod's claims that no other pod may use at the same time; nil: there are none. It skips
// claims that are made for the pod (Ephemeral), and those that the cache does not have.
func (p Plugin) alone(pod *model.PodInfo) map[string]bool {
	var out map[string]bool
	for _, pc := range pod.Claims {
		c := p.Volumes.Claim(pod.Pod.Namespace, pc.Name)
		if c == nil || pc.Ephemeral || !slices.Contains(c.Spec.AccessModes, corev1.ReadWriteOncePod) {
			continue
		}
		if out == nil {
			out = map[string]bool{}
		}
		out[pc.Name] = true
	}
	return out
}

// conflicts counts how often other pods use the pod's claims that only one pod may use.
type conflicts struct {
	alone map[string]bool
	count int
}

// CloneState implements framework.Cloner.
func (c *conflicts) CloneState() any { n := *c; return &n }

// of counts the claims of other that conflict with those of pod.
func (c *conflicts) of(pod, other *model.PodInfo) int {
	if other.Pod.Namespace != pod.Pod.Namespace {
		return 0
	}
	n := 0
	for _, pc := range other.Claims {
		if c.alone[pc.Name] {
			n++
		}
	}
	return n
}

// PreFilter counts the other pods' uses of the pod's claims that only one pod may use, on all nodes. It skips pods
// without such claims or disks.
func (p Plugin) PreFilter(state *framework.CycleState, pod *model.PodInfo, s *model.Snapshot) (map[string]bool,
	*framework.Status) {
	c := &conflicts{alone: p.alone(pod)}
	if len(c.alone) == 0 && len(pod.Disks) == 0 {
		return nil, framework.NewStatus(framework.Skip)
	}
	if len(c.alone) > 0 {
		for n := range s.All {
			for _, other := range n.Pods {
				c.count += c.of(pod, other)
			}
		}
	}
	state.Write(name, c)
	return nil, nil
}

// AddPod implements framework.PreFilterExtensions.
func (p Plugin) AddPod(state *framework.CycleState, pod, added *model.PodInfo, _ *model.NodeInfo) {
	if c, ok := state.Read(name).(*conflicts); ok {
		c.count += c.of(pod, added)
	}
}

// RemovePod implements framework.PreFilterExtensions.
func (p Plugin) RemovePod(state *framework.CycleState, pod, removed *model.PodInfo, _ *model.NodeInfo) {
	if c, ok := state.Read(name).(*conflicts); ok {
		c.count -= c.of(pod, removed)
	}
}

// Filter refuses nodes that have one of the disks, and all nodes while another pod uses one of the claims.
func (p Plugin) Filter(state *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) *framework.Status {
	for _, d := range pod.Disks {
		for _, other := range node.Pods {
			for _, o := range other.Disks {
				if conflict(d, o) {
					return framework.NewStatus(framework.Unschedulable, ReasonDisk)
				}
			}
		}
	}
	c, ok := state.Read(name).(*conflicts)
	if !ok {
		return framework.AsStatus(fmt.Errorf("the pod's claims were not looked at"))
	}
	if c.count > 0 {
		return framework.NewStatus(framework.Unschedulable, ReasonOncePod)
	}
	return nil
}

// conflict reports whether two volumes are one disk that may not be mounted twice. If both only read, it may, except on
// AWS.
func conflict(a, b *corev1.Volume) bool {
	if x, y := a.GCEPersistentDisk, b.GCEPersistentDisk; x != nil && y != nil {
		return x.PDName == y.PDName && !(x.ReadOnly && y.ReadOnly)
	}
	if x, y := a.AWSElasticBlockStore, b.AWSElasticBlockStore; x != nil && y != nil {
		return x.VolumeID == y.VolumeID
	}
	if x, y := a.ISCSI, b.ISCSI; x != nil && y != nil {
		return x.IQN == y.IQN && !(x.ReadOnly && y.ReadOnly)
	}
	if x, y := a.RBD, b.RBD; x != nil && y != nil {
		shared := slices.ContainsFunc(x.CephMonitors, func(m string) bool { return slices.Contains(y.CephMonitors, m) })
		return shared && x.RBDPool == y.RBDPool && x.RBDImage == y.RBDImage && !(x.ReadOnly && y.ReadOnly)
	}
	return false
}

// EventsToRegister: a pod that has the disk or the claim goes, a node comes, or a claim turns up.
func (p Plugin) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{
		{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete, When: func(e clusterevent.Event) bool {
			gone, ok := e.Old.(*model.PodInfo)
			return !ok || len(gone.Claims) > 0 || len(gone.Disks) > 0
		}},
		{Kind: clusterevent.Node, Action: clusterevent.Add},
		{Kind: clusterevent.Claim, Action: clusterevent.Add | clusterevent.Update},
	}
}
