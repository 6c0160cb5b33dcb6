// Package nodename keeps a pod that names its node to that node.
package nodename

import (
	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// name of the plug-in.
const name = "NodeName"

// reason why a node is refused.
const reason = "node(s) didn't match the requested node name"

// Plugin is the NodeName plug-in.
type Plugin struct{}

var (
	_ framework.Filter    = Plugin{}
	_ framework.NodeLocal = Plugin{}
)

// Name is the plug-in's name.
func (Plugin) Name() string { return name }

// Reads declares the name of the node that the pod asks for. The names of nodes are no part of the key.
func (Plugin) Reads(pod *model.PodInfo, k *model.Key) { k.Str(pod.Pod.Spec.NodeName) }

// Filter refuses every node but the named one.
func (Plugin) Filter(_ *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) *framework.Status {
	if want := pod.Pod.Spec.NodeName; want != "" && want != node.Name() {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, reason)
	}
	return nil
}

// EventsToRegister: a node of that name may come.
func (Plugin) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{{Kind: clusterevent.Node, Action: clusterevent.Add}}
}
