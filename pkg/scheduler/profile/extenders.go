package profile

import (
	"context"
	"slices"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// silent refuses a node that the extender's answer does not name. It adds no line to the pod's condition, but the
// extender counts as the plug-in that refused.
var silent = &framework.Status{Code: framework.Unschedulable, Plugin: framework.ExtenderName}

// extended are the extenders that pod is sent to.
func (p *Profile) extended(pod *model.PodInfo) []framework.Extender {
	var out []framework.Extender
	for _, e := range p.extenders {
		if e.Concerns(pod) {
			out = append(out, e)
		}
	}
	return out
}

// RunExtenders lets the extenders choose among the nodes that the plug-ins let pass, one after the other. The refused
// nodes are handed to reject. An extender that cannot be asked and may be ignored lets all pass.
//
// Each extender costs a request in the scheduling goroutine, for every pod that it concerns. They go one after the
// other, because each sees only what the one before it left.
func (p *Profile) RunExtenders(
	ctx context.Context, pod *model.PodInfo, nodes []*model.NodeInfo, reject func(*model.NodeInfo, *framework.Status),
) ([]*model.NodeInfo, error) {
	for _, e := range p.extended(pod) {
		if len(nodes) == 0 {
			break
		}
		kept, refused, err := e.FilterNodes(ctx, pod, nodes)
		switch {
		case err != nil && e.Ignorable():
			continue
		case err != nil:
			return nil, err
		}
		stays := make(map[*model.NodeInfo]bool, len(kept))
		for _, n := range kept {
			stays[n] = true
		}
		for _, n := range nodes {
			if st := refused[n]; st != nil {
				reject(n, st.WithPlugin(framework.ExtenderName))
			} else if !stays[n] {
				reject(n, silent)
			}
		}
		nodes = kept
	}
	return nodes, nil
}

// Spares reports whether an extender takes part in preemption for pod.
func (p *Profile) Spares(pod *model.PodInfo) bool {
	return slices.ContainsFunc(p.extended(pod), framework.Extender.Preempts)
}

// SpareVictims lets those extenders that take part in preemption choose among the nodes and victims, one after the
// other.
//
// The result has no more nodes and no more victims than it was given; an extender that fails and may be ignored changes
// nothing.
func (p *Profile) SpareVictims(
	ctx context.Context, pod *model.PodInfo, victims map[string]framework.Victims,
) (map[string]framework.Victims, error) {
	for _, e := range p.extended(pod) {
		if len(victims) == 0 {
			break
		}
		if !e.Preempts() {
			continue
		}
		left, err := e.SparePods(ctx, pod, victims)
		switch {
		case err != nil && e.Ignorable():
			continue
		case err != nil:
			return nil, err
		}
		victims = left
	}
	return victims, nil
}
