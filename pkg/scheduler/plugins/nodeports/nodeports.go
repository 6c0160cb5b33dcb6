// Package nodeports gives a host port of a node to one pod only.
package nodeports

import (
	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// name of the plug-in.
const name = "NodePorts"

// reason why a node is refused.
const reason = "node(s) didn't have free ports for the requested pod ports"

// Plugin is the NodePorts plug-in.
type Plugin struct{}

var (
	_ framework.PreFilter = Plugin{}
	_ framework.Filter    = Plugin{}
	_ framework.NodeLocal = Plugin{}
)

// Name is the plug-in's name.
func (Plugin) Name() string { return name }

// Reads the host ports.
func (Plugin) Reads(pod *model.PodInfo, k *model.Key) {
	k.Num(int64(len(pod.Ports)))
	for _, p := range pod.Ports {
		k.Str(string(p.Protocol), p.IP)
		k.Num(int64(p.Port))
	}
}

// PreFilter skips pods without host ports.
func (Plugin) PreFilter(_ *framework.CycleState, pod *model.PodInfo, _ *model.Snapshot) (map[string]bool,
	*framework.Status) {
	if len(pod.Ports) == 0 {
		return nil, framework.NewStatus(framework.Skip)
	}
	return nil, nil
}

// Filter refuses nodes where one of the ports is taken.
func (Plugin) Filter(_ *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) *framework.Status {
	for _, want := range pod.Ports {
		for used := range node.Ports {
			if want.Conflicts(used) {
				return framework.NewStatus(framework.Unschedulable, reason)
			}
		}
	}
	return nil
}

// EventsToRegister: a pod that holds one of the ports goes, or a node comes.
func (p Plugin) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{
		{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete, Reads: model.KeyOf(p.Reads),
			Hint: func(pod *model.PodInfo, e clusterevent.Event) bool {
				gone, ok := e.Old.(*model.PodInfo)
				if !ok {
					return true
				}
				for _, a := range pod.Ports {
					for _, b := range gone.Ports {
						if a.Conflicts(b) {
							return true
						}
					}
				}
				return false
			}},
		{Kind: clusterevent.Node, Action: clusterevent.Add},
	}
}
