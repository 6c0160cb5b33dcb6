package dynamicresources

import (
	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

var (
	_ framework.PreScore   = &Plugin{}
	_ framework.Score      = &Plugin{}
	_ framework.Normalizer = &Plugin{}
)

// PreScore leaves out pods whose claims have no alternatives: all nodes give them the same.
func (p *Plugin) PreScore(state *framework.CycleState, _ *model.PodInfo, _ *model.Snapshot,
	_ []*model.NodeInfo) *framework.Status {
	if needs, ok := state.Read(Name).(*devices.Needs); !ok || !needs.Prefers() {
		return framework.NewStatus(framework.Skip)
	}
	return nil
}

// Score rates which alternatives the pod's claims get on the node (KEP-4816).
func (p *Plugin) Score(state *framework.CycleState, _ *model.PodInfo, node *model.NodeInfo) int64 {
	needs, ok := state.Read(Name).(*devices.Needs)
	if !ok {
		return 0
	}
	got, st := needs.On(node.Node, p.FilterTimeout)
	if !st.IsSuccess() {
		return 0
	}
	return needs.Preference(got)
}

// NormalizeScore gives the best node the most, and the others their part of that.
func (*Plugin) NormalizeScore(_ *framework.CycleState, _ *model.PodInfo, _ []*model.NodeInfo, scores []int64) {
	framework.DefaultNormalize(false, scores)
}
