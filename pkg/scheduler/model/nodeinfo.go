package model

import (
	"math"

	corev1 "k8s.io/api/core/v1"
)

// NodeInfo is a node and what is on it. In a Snapshot it is read-only; Clone it to try changes.
type NodeInfo struct {
	Node *corev1.Node
	// Slot is the node's index in Snapshot.Nodes.
	Slot int
	Pods []*PodInfo
	// WithTerms are the pods with affinity to pods, WithAntiAffinity those that require anti-affinity.
	WithTerms, WithAntiAffinity []*PodInfo
	// Requested and NonZero sum the pods' requests, the second with defaults for containers that ask for nothing.
	Requested, NonZero Resource
	Allocatable        Resource
	Ports              map[HostPort]bool
	// VolumeLimits is how many volumes the node can have attached, by CSI driver (volumes.Unlimited if the driver sets
	// no limit); drivers that are missing are not installed. It is read-only.
	VolumeLimits map[string]int64
	// Images on the node, by name, with their size in bytes.
	Images map[string]int64
	// Lowest is the lowest priority among the pods.
	Lowest int32
	// Generation grows with each change that a verdict may depend on, across all nodes; Version with any change, such
	// as that of a pod's status. 0 is for nodes outside of the scheduler's cache.
	Generation, Version int64
}

// NewNodeInfo returns the state of a node that runs the given pods.
func NewNodeInfo(node *corev1.Node, pods ...*PodInfo) *NodeInfo {
	n := &NodeInfo{Lowest: math.MaxInt32}
	n.SetNode(node)
	for _, p := range pods {
		n.AddPod(p)
	}
	return n
}

// Name is the node's name.
func (n *NodeInfo) Name() string { return n.Node.Name }

// SetNode replaces the node object.
func (n *NodeInfo) SetNode(node *corev1.Node) {
	n.Node = node
	n.Allocatable = Resource{}
	if node != nil {
		n.Allocatable = newResource(node.Status.Allocatable)
	}
	n.Images = nil
	if node == nil {
		return
	}
	for _, image := range node.Status.Images {
		for _, name := range image.Names {
			if n.Images == nil {
				n.Images = map[string]int64{}
			}
			n.Images[name] = image.SizeBytes
		}
	}
}

// AddPod counts a pod in.
func (n *NodeInfo) AddPod(p *PodInfo) {
	n.Pods = append(n.Pods, p)
	n.Lowest = min(n.Lowest, Priority(p.Pod))
	if p.HasTerms() {
		n.WithTerms = append(n.WithTerms, p)
	}
	if p.HasRequiredAntiAffinity() {
		n.WithAntiAffinity = append(n.WithAntiAffinity, p)
	}
	n.count(p, 1)
	for _, port := range p.Ports {
		if n.Ports == nil {
			n.Ports = map[HostPort]bool{}
		}
		n.Ports[port] = true
	}
}

// RemovePod counts out the pod with this UID; false if it is not there.
func (n *NodeInfo) RemovePod(pod *corev1.Pod) bool {
	var gone *PodInfo
	n.Pods, gone = without(n.Pods, pod)
	if gone == nil {
		return false
	}
	if gone.HasTerms() {
		n.WithTerms, _ = without(n.WithTerms, pod)
	}
	if gone.HasRequiredAntiAffinity() {
		n.WithAntiAffinity, _ = without(n.WithAntiAffinity, pod)
	}
	n.count(gone, -1)
	if Priority(gone.Pod) == n.Lowest {
		n.Lowest = math.MaxInt32
		for _, p := range n.Pods {
			n.Lowest = min(n.Lowest, Priority(p.Pod))
		}
	}
	if len(gone.Ports) > 0 {
		n.Ports = nil
		for _, p := range n.Pods {
			for _, port := range p.Ports {
				if n.Ports == nil {
					n.Ports = map[HostPort]bool{}
				}
				n.Ports[port] = true
			}
		}
	}
	return true
}

// ReplacePod puts p in the place of the pod with its UID; both must count the same.
func (n *NodeInfo) ReplacePod(p *PodInfo) {
	for _, list := range [][]*PodInfo{n.Pods, n.WithTerms, n.WithAntiAffinity} {
		for i, q := range list {
			if q.Pod.UID == p.Pod.UID {
				list[i] = p
			}
		}
	}
}

func (n *NodeInfo) count(p *PodInfo, sign int64) {
	n.Requested.Add(&p.Requests, sign)
	n.NonZero.Add(&p.NonZero, sign)
}

// without returns the list without the pod of this UID, in the same array, and the pod.
func without(list []*PodInfo, pod *corev1.Pod) ([]*PodInfo, *PodInfo) {
	for i, p := range list {
		if p.Pod.UID == pod.UID {
			last := len(list) - 1
			list[i] = list[last]
			list[last] = nil
			return list[:last], p
		}
	}
	return list, nil
}

// Split returns the node without its pods of a lower priority, and these.
func (n *NodeInfo) Split(priority int32) (*NodeInfo, []*PodInfo) {
	rest := *n
	rest.Pods, rest.WithTerms, rest.WithAntiAffinity, rest.Ports = nil, nil, nil, nil
	rest.Requested, rest.NonZero, rest.Lowest = Resource{}, Resource{}, math.MaxInt32
	lower := make([]*PodInfo, 0, len(n.Pods))
	for _, p := range n.Pods {
		if Priority(p.Pod) < priority {
			lower = append(lower, p)
		} else {
			rest.AddPod(p)
		}
	}
	return &rest, lower
}

// Clone copies what AddPod and RemovePod change; pods, node and images are shared.
func (n *NodeInfo) Clone() *NodeInfo {
	c := *n
	c.Pods = append(make([]*PodInfo, 0, len(n.Pods)+1), n.Pods...)
	c.WithTerms = append([]*PodInfo(nil), n.WithTerms...)
	c.WithAntiAffinity = append([]*PodInfo(nil), n.WithAntiAffinity...)
	c.Requested, c.NonZero = n.Requested.Clone(), n.NonZero.Clone()
	if n.Ports != nil {
		c.Ports = make(map[HostPort]bool, len(n.Ports))
		for p := range n.Ports {
			c.Ports[p] = true
		}
	}
	return &c
}
