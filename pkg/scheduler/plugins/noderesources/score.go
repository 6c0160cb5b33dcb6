package noderesources

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// Weight is what a resource counts in a score.
type Weight struct {
	Name   corev1.ResourceName
	Weight int64
}

// byDefault are the resources that count where none are named.
var byDefault = []Weight{{corev1.ResourceCPU, 1}, {corev1.ResourceMemory, 1}}

// Score is the weighted mean of what the resources say: the parts that are free (LeastAllocated) or used
// (MostAllocated) with the pod, of 100, or what Shape gives for them. Containers without requests for CPU and memory
// count with a default. What a node does not have, and what is neither CPU nor memory and the pod does not ask for,
// says nothing.
func (f Fit) Score(_ *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) int64 {
	weights := f.Weights
	if len(weights) == 0 {
		weights = byDefault
	}
	var sum, of int64
	for _, w := range weights {
		used, has := taken(w.Name, pod, node)
		if has == 0 {
			continue
		}
		score := f.of(used, has)
		if f.Strategy == RequestedToCapacityRatio && score == 0 {
			continue // as upstream: a resource that scores nothing does not count in the mean
		}
		sum += score * w.Weight
		of += w.Weight
	}
	switch {
	case of == 0:
		return 0
	case f.Strategy == RequestedToCapacityRatio:
		return int64(math.Round(float64(sum) / float64(of)))
	}
	return sum / of
}

// taken is how much of a resource would be used of the node, and how much the node has; 0 if the resource is not to
// count.
func taken(name corev1.ResourceName, pod *model.PodInfo, node *model.NodeInfo) (used, has int64) {
	switch name {
	case corev1.ResourceCPU:
		return node.NonZero.MilliCPU + pod.NonZero.MilliCPU, node.Allocatable.MilliCPU
	case corev1.ResourceMemory:
		return node.NonZero.Memory + pod.NonZero.Memory, node.Allocatable.Memory
	case corev1.ResourceEphemeralStorage:
		return node.Requested.EphemeralStorage + pod.Requests.EphemeralStorage, node.Allocatable.EphemeralStorage
	}
	if pod.Requests.Scalar[name] == 0 {
		return 0, 0
	}
	return node.Requested.Scalar[name] + pod.Requests.Scalar[name], node.Allocatable.Scalar[name]
}

func (f Fit) of(used, has int64) int64 {
	switch f.Strategy {
	case MostAllocated:
		return min(used, has) * framework.MaxNodeScore / has
	case RequestedToCapacityRatio:
		return f.Shape.Score(min(used, has) * 100 / has)
	}
	return max(has-used, 0) * framework.MaxNodeScore / has
}
