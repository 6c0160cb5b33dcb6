package framework

import (
	"context"

	"bonsai/pkg/scheduler/model"
)

// ExtenderName is the plug-in that statuses of extenders name. No events are known that help a pod which an extender
// turned down: each may.
const ExtenderName = "Extender"

// Extender is a program beside the scheduler that is asked about pods as well (KubeSchedulerConfiguration's extenders),
// after the profile's plug-ins: about all nodes of a pod at once, and not about each. All profiles share the extenders.
type Extender interface {
	Selective
	// Name tells extenders apart: its URL.
	Name() string
	// Ignorable reports whether the pod goes on without the extender where it cannot be asked.
	Ignorable() bool
	// FilterNodes returns the nodes on which the pod can run, and why not on others.
	FilterNodes(ctx context.Context, pod *model.PodInfo, nodes []*model.NodeInfo) (
		kept []*model.NodeInfo, refused map[*model.NodeInfo]*Status, err error)
	// ScoreNodes adds its weighted scores, on the scale of plug-ins, to the totals of the nodes of the same index.
	ScoreNodes(ctx context.Context, pod *model.PodInfo, nodes []*model.NodeInfo, totals []int64) error
	// Preempts and Binds report whether SparePods and Bind are implemented.
	Preempts() bool
	Binds() bool
	// SparePods returns the nodes where pods may be evicted for pod, and which: some of those that it is given, by the
	// node's name.
	SparePods(ctx context.Context, pod *model.PodInfo, victims map[string]Victims) (map[string]Victims, error)
	// Bind binds the pod, in the place of the profile's plug-ins.
	Bind(ctx context.Context, pod *model.PodInfo, node string) error
}

// Victims are pods on one node that would have to go for another.
type Victims struct {
	Pods []*model.PodInfo
	// Violations counts those whose disruption budget does not allow it.
	Violations int64
}
