package noderesources

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// BalancedName is the name of the BalancedAllocation plug-in.
const BalancedName = "NodeResourcesBalancedAllocation"

// Balanced is the NodeResourcesBalancedAllocation plug-in.
type Balanced struct {
	// Resources are those whose parts are compared; none: CPU and memory.
	Resources []corev1.ResourceName
}

var (
	_ framework.PreScore  = Balanced{}
	_ framework.Score     = Balanced{}
	_ framework.NodeLocal = Balanced{}
)

// Name is the plug-in's name.
func (Balanced) Name() string { return BalancedName }

// Reads what the pod asks for.
func (Balanced) Reads(pod *model.PodInfo, k *model.Key) { k.Resource(&pod.Requests) }

func (b Balanced) resources() []corev1.ResourceName {
	if len(b.Resources) > 0 {
		return b.Resources
	}
	return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}

// PreScore skips pods that ask for none of the resources: they change no balance.
func (b Balanced) PreScore(_ *framework.CycleState, pod *model.PodInfo, _ *model.Snapshot,
	_ []*model.NodeInfo) *framework.Status {
	asks := func(name corev1.ResourceName) bool { return pod.Requests.Of(name) != 0 }
	if !slices.ContainsFunc(b.resources(), asks) {
		return framework.NewStatus(framework.Skip)
	}
	return nil
}

// Score is 75 where the pod leaves a node's balance as it is, 100 and 50 where it makes the most and the least of it.
// Resources that a node does not have say nothing, nor do devices that the pod does not ask for.
func (b Balanced) Score(_ *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) int64 {
	var before, after []float64
	for _, name := range b.resources() {
		has, used, want := node.Allocatable.Of(name), node.Requested.Of(name), pod.Requests.Of(name)
		if has == 0 || want == 0 && scalar(name) {
			continue
		}
		before = append(before, part(used, has))
		after = append(after, part(used+want, has))
	}
	return (framework.MaxNodeScore*3/2 + balance(after) - balance(before)) / 2
}

// part is how much of a resource is used, at most 1.
func part(used, has int64) float64 { return math.Min(float64(used)/float64(has), 1) }

// balance is 100 where all parts are alike, and 50 where two are as different as they can be: 100 times one less their
// standard deviation.
func balance(parts []float64) int64 {
	deviation := 0.0
	switch n := len(parts); {
	case n == 2:
		deviation = math.Abs(parts[0]-parts[1]) / 2
	case n > 2:
		var sum, squares float64
		for _, p := range parts {
			sum += p
		}
		for _, p := range parts {
			squares += (p - sum/float64(n)) * (p - sum/float64(n))
		}
		deviation = math.Sqrt(squares / float64(n))
	}
	return int64((1 - deviation) * framework.MaxNodeScore)
}

// scalar reports whether a resource is neither CPU, memory nor ephemeral storage.
func scalar(name corev1.ResourceName) bool {
	return name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage
}
