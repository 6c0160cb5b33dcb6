package volumebinding

import (
	"math"
	"math/bits"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/volumes"
)

// roomy prefers the nodes with the most room.
func roomy() framework.Shape {
	return framework.Shape{{Utilization: 0, Score: 10}, {Utilization: 100, Score: 0}}
}

// PreScore leaves out pods whose claims all have their volumes: where these can be used, all nodes are alike.
func (p *Plugin) PreScore(state *framework.CycleState, _ *model.PodInfo, _ *model.Snapshot,
	_ []*model.NodeInfo) *framework.Status {
	if needs, ok := state.Read(name).(*volumes.Needs); !ok || !needs.Unbound() {
		return framework.NewStatus(framework.Skip)
	}
	return nil
}

// Score rates how much of the room for the pod's claims they take (KEP-4049): of the volumes that were chosen for them,
// or, if all volumes are yet to be made, of what the driver has where the node is. The claims of each storage class are
// added up; the score is the mean of that of the classes, 0 if no driver says how much room it has.
func (p *Plugin) Score(state *framework.CycleState, _ *model.PodInfo, node *model.NodeInfo) int64 {
	needs, ok := state.Read(name).(*volumes.Needs)
	if !ok {
		return 0
	}
	choice, reasons := needs.On(node.Node)
	if len(reasons) > 0 {
		return 0
	}
	points := p.Shape
	if len(points) == 0 {
		points = roomy()
	}
	room := choice.Room()
	if len(room) == 0 {
		return 0
	}
	var sum int64
	for _, r := range room {
		used := int64(100)
		if r.Has > 0 && r.Asked <= r.Has {
			high, low := bits.Mul64(uint64(r.Asked), 100)
			part, _ := bits.Div64(high, low, uint64(r.Has))
			used = int64(part)
		}
		sum += points.Score(used)
	}
	return int64(math.Round(float64(sum) / float64(len(room))))
}
