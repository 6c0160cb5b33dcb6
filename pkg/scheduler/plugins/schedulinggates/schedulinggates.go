// Package schedulinggates holds pods back while spec.schedulingGates has entries.
package schedulinggates

import (
	"fmt"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// name of the plug-in.
const name = "SchedulingGates"

// Plugin is the SchedulingGates plug-in.
type Plugin struct{}

var _ framework.PreEnqueue = Plugin{}

// Name is the plug-in's name.
func (Plugin) Name() string { return name }

// PreEnqueue turns pods with gates down.
func (Plugin) PreEnqueue(pod *model.PodInfo) *framework.Status {
	gates := pod.Pod.Spec.SchedulingGates
	if len(gates) == 0 {
		return nil
	}
	names := make([]string, len(gates))
	for i, g := range gates {
		names[i] = g.Name
	}
	return framework.NewStatus(framework.UnschedulableAndUnresolvable,
		fmt.Sprintf("waiting for scheduling gates: %v", names))
}

// EventsToRegister: only the removal of the gates helps.
func (Plugin) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateGates}}
}
