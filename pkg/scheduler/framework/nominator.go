package framework

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Nominator remembers the pods that wait for victims to leave a node: other pods of lower or equal priority must not take
// the room. It is safe for concurrent use.
type Nominator struct {
	mu     sync.Mutex
	byPod  map[types.UID]nomination
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
		n.byNode[node] = append(n.byNode[node], pod)
	}
}

// Of returns the node nominated for the pod, "" if none is.
func (n *Nominator) Of(uid types.UID) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byPod[uid].node
}

// On returns the pods nominated to node whose priority is not lower than pod's, without pod itself.
func (n *Nominator) On(node string, pod *PodInfo) []*PodInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.on(node, pod)
}

func (n *Nominator) on(node string, pod *PodInfo) []*PodInfo {
	var out []*PodInfo
	for _, p := range n.byNode[node] {
		if p.Pod.UID != pod.Pod.UID && Priority(p.Pod) >= Priority(pod.Pod) {
			out = append(out, p)
		}
	}
	return out
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

// Rivals returns, by node, what On returns for it, where that is anything.
func (n *Nominator) Rivals(pod *PodInfo) map[string][]*PodInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out map[string][]*PodInfo
	for node := range n.byNode {
		if list := n.on(node, pod); len(list) > 0 {
			if out == nil {
				out = make(map[string][]*PodInfo, len(n.byNode))
			}
			out[node] = list
		}
	}
	return out
}
