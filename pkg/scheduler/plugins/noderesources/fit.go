package noderesources

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// FitName is the name of the Fit plug-in.
const FitName = "NodeResourcesFit"

// Strategy says which nodes Fit prefers.
type Strategy string

// The strategies.
const (
	// LeastAllocated prefers nodes with the most left; the default.
	LeastAllocated Strategy = "LeastAllocated"
	// MostAllocated prefers nodes with the least left.
	MostAllocated Strategy = "MostAllocated"
	// RequestedToCapacityRatio prefers what Fit.Shape says.
	RequestedToCapacityRatio Strategy = "RequestedToCapacityRatio"
)

// Fit is the NodeResourcesFit plug-in.
type Fit struct {
	Strategy Strategy
	// Weights are what resources count in the score; none: CPU and memory alike.
	Weights []Weight
	// Shape gives the score of a used part of a node, with RequestedToCapacityRatio.
	Shape framework.Shape
	// Ignored reports whether Filter is not to look at a resource that is neither CPU nor memory; nil: it looks at all.
	Ignored func(corev1.ResourceName) bool
	// ByDevices reports whether devices are claimed for a resource on nodes that do not have it themselves, which is
	// then not looked at there; nil: for none.
	ByDevices func(corev1.ResourceName) bool
}

var (
	_ framework.Filter    = Fit{}
	_ framework.Score     = Fit{}
	_ framework.NodeLocal = Fit{}
)

// Name is the plug-in's name.
func (Fit) Name() string { return FitName }

// Reads what the pod asks for.
func (f Fit) Reads(pod *model.PodInfo, k *model.Key) {
	k.Resource(&pod.Requests)
	k.Resource(&pod.NonZero)
	if f.ByDevices != nil && len(pod.Requests.Scalar) > 0 {
		for _, name := range slices.Sorted(maps.Keys(pod.Requests.Scalar)) {
			k.Bool(f.ByDevices(name))
		}
	}
}

// Filter names each resource that the node has too little of. If the node could not give it even when empty,
// removing pods does not help.
func (f Fit) Filter(_ *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) *framework.Status {
	var reasons []string
	code := framework.Unschedulable
	check := func(name string, want, used, has int64) {
		if want > 0 && want > has-used {
			reasons = append(reasons, "Insufficient "+name)
			if want > has {
				code = framework.UnschedulableAndUnresolvable
			}
		}
	}
	if int64(len(node.Pods))+1 > node.Allocatable.Pods {
		reasons = append(reasons, "Too many pods")
	}
	w, u, a := &pod.Requests, &node.Requested, &node.Allocatable
	check("cpu", w.MilliCPU, u.MilliCPU, a.MilliCPU)
	check("memory", w.Memory, u.Memory, a.Memory)
	check("ephemeral-storage", w.EphemeralStorage, u.EphemeralStorage, a.EphemeralStorage)
	if len(w.Scalar) > 0 {
		names := make([]string, 0, len(w.Scalar))
		for name := range w.Scalar {
			if f.Ignored == nil || !f.Ignored(name) {
				names = append(names, string(name))
			}
		}
		slices.Sort(names)
		for _, n := range names {
			name := corev1.ResourceName(n)
			if a.Scalar[name] == 0 && f.ByDevices != nil && f.ByDevices(name) {
				continue
			}
			check(n, w.Scalar[name], u.Scalar[name], a.Scalar[name])
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return framework.NewStatus(code, reasons...)
}

// EventsToRegister: a pod goes or shrinks, a node comes or grows enough, or the pod itself asks for less.
func (f Fit) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{
		{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete | clusterevent.UpdateRequests},
		{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateRequests},
		{Kind: clusterevent.DeviceClass, Action: clusterevent.Add | clusterevent.Update, Reads: model.KeyOf(f.Reads),
			Hint: func(pod *model.PodInfo, e clusterevent.Event) bool {
				c, ok := e.New.(*resourcev1.DeviceClass)
				if !ok || f.ByDevices == nil {
					return false
				}
				for name := range pod.Requests.Scalar {
					if devices.Gives(c, name) {
						return true
					}
				}
				return false
			}},
		{Kind: clusterevent.Node, Action: clusterevent.Add | clusterevent.UpdateAllocatable,
			Reads: model.KeyOf(f.Reads), Hint: func(pod *model.PodInfo, e clusterevent.Event) bool {
				n, ok := e.New.(*corev1.Node)
				if !ok {
					return true
				}
				// Alone on the node the pod must fit, else the change cannot have helped.
				return f.Filter(nil, pod, model.NewNodeInfo(n)).IsSuccess()
			}},
	}
}
