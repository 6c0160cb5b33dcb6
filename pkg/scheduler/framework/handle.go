package framework

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/model"
)

// Activator lets a plug-in release the pods that it holds back with PreEnqueue. The queue implements it.
type Activator interface {
	// Ungate calls the PreEnqueue plug-ins of a pod that one of them holds back once more.
	Ungate(pod types.UID)
	// Retry has the pod tried again after its back-off, whatever it waits for: what was done to help it has failed.
	Retry(pod types.UID)
}

// Handle gives a PostFilter plug-in the other plug-ins of its profile, to try what would make the pod fit. It comes
// with the call and not with the plug-in's construction, since a profile is made of its plug-ins.
type Handle interface {
	Activator
	// RunFilter returns the first refusal of pod by node.
	RunFilter(state *CycleState, pod *model.PodInfo, node *model.NodeInfo) *Status
	// AddPod and RemovePod change the prepared state as if a pod were added to or removed from node.
	AddPod(state *CycleState, pod, added *model.PodInfo, node *model.NodeInfo)
	RemovePod(state *CycleState, pod, removed *model.PodInfo, node *model.NodeInfo)
	// Alone returns the pod's class and a state for RunFilter if each node alone decides whether the pod fits there.
	Alone(pod *model.PodInfo, s *model.Snapshot, nominated []*model.PodInfo) (class string, state *CycleState, ok bool)
	// Spares reports whether an extender takes part in preemption for pod; SpareVictims asks those extenders.
	Spares(pod *model.PodInfo) bool
	SpareVictims(ctx context.Context, pod *model.PodInfo, victims map[string]Victims) (map[string]Victims, error)
	// RejectWaiting refuses a pod that waits between Permit and binding; false says that it does not wait.
	RejectWaiting(pod types.UID, plugin, reason string) bool
	// Go runs f beside the scheduling cycles. f must end soon after the context of its cycle has ended.
	Go(f func())
}
