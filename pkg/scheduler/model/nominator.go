package model

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Nominator remembers the pods that wait for victims to leave a node: other pods of lower or equal priority must not
// take the room. It is safe for concurrent use.
type Nominator struct {
	mu    sync.Mutex
	byPod map[types.UID]nomination
	// byNode has lists that are given away: they are replaced and never changed.
	byNode map[string][]*PodInfo
}

type nomination struct {
	pod  *PodInfo
	node string
}

// NewNominator returns an empty Nominator.
func NewNominator() *Nominator {
	return &Nominator{byPod: map[types.UID]nomination{}, byNode: map[string][]*PodInfo{}}
}

// Set nominates node for pod; "" takes the nomination back.
func (n *Nominator) Set(pod *PodInfo, node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	uid := pod.Pod.UID
	if old, ok := n.byPod[uid]; ok {
		n.byNode[old.node], _ = without(append([]*PodInfo(nil), n.byNode[old.node]...), pod.Pod)
		if len(n.byNode[old.node]) == 0 {
			delete(n.byNode, old.node)
		}
		delete(n.byPod, uid)
	}
	if node != "" {
		n.byPod[uid] = nomination{pod, node}
		n.byNode[node] = append(slices.Clip(n.byNode[node]), pod)
	}
}

// Of returns the node nominated for the pod, "" if none is.
func (n *Nominator) Of(uid types.UID) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byPod[uid].node
}

// On returns the pods nominated to node whose priority is not lower than pod's, without pod itself. The list is
// read-only.
func (n *Nominator) On(node string, pod *PodInfo) []*PodInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	return rivals(n.byNode[node], pod)
}

// rivals returns those of the list whose room the pod must not take: the list itself if they all are, which is the
// common case.
func rivals(list []*PodInfo, pod *PodInfo) []*PodInfo {
	rival := func(p *PodInfo) bool { return Priority(p.Pod) >= Priority(pod.Pod) && p.Pod.UID != pod.Pod.UID }
	for i, p := range list {
		if rival(p) {
			continue
		}
		out := slices.Clone(list[:i])
		for _, p := range list[i+1:] {
			if rival(p) {
				out = append(out, p)
			}
		}
		return out
	}
	return list
}

// Below returns the pods nominated to node whose priority is lower than pod's.
func (n *Nominator) Below(node string, pod *PodInfo) []*PodInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []*PodInfo
	for _, p := range n.byNode[node] {
		if Priority(p.Pod) < Priority(pod.Pod) {
			out = append(out, p)
		}
	}
	return out
}

// Rivals returns, by node, what On returns for it, where that is anything. The lists are read-only.
func (n *Nominator) Rivals(pod *PodInfo) map[string][]*PodInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out map[string][]*PodInfo
	for node, list := range n.byNode {
		if list := rivals(list, pod); len(list) > 0 {
			if out == nil {
				out = make(map[string][]*PodInfo, len(n.byNode))
			}
			out[node] = list
		}
	}
	return out
}
