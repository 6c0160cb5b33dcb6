package noderesources

import (
	"math"

	"bonsai/pkg/scheduler/framework"
)

// BalancedName is the name of the BalancedAllocation plug-in.
const BalancedName = "NodeResourcesBalancedAllocation"

// Balanced is the NodeResourcesBalancedAllocation plug-in.
type Balanced struct{}

var (
	_ framework.PreScore  = Balanced{}
	_ framework.Score     = Balanced{}
	_ framework.NodeLocal = Balanced{}
)

// Name is the plug-in's name.
func (Balanced) Name() string { return BalancedName }

// Reads what the pod asks for.
func (Balanced) Reads(pod *framework.PodInfo, k *framework.Key) { k.Resource(&pod.Requests) }

// PreScore skips pods that ask for neither CPU nor memory: they change no balance.
func (Balanced) PreScore(_ *framework.CycleState, pod *framework.PodInfo, _ *framework.Snapshot, _ []*framework.NodeInfo) *framework.Status {
	if pod.Requests.MilliCPU == 0 && pod.Requests.Memory == 0 {
		return framework.NewStatus(framework.Skip)
	}
	return nil
}

// Score is 100 times (1 - the standard deviation of the used parts of CPU and memory), with the pod.
func (Balanced) Score(_ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) int64 {
	parts := make([]float64, 0, 2)
	add := func(want, has int64) {
		if has > 0 {
			parts = append(parts, math.Min(float64(want)/float64(has), 1))
		}
	}
	add(node.Requested.MilliCPU+pod.Requests.MilliCPU, node.Allocatable.MilliCPU)
	add(node.Requested.Memory+pod.Requests.Memory, node.Allocatable.Memory)
	deviation := 0.0
	if len(parts) == 2 {
		deviation = math.Abs(parts[0]-parts[1]) / 2
	}
	return int64((1 - deviation) * framework.MaxNodeScore)
}
