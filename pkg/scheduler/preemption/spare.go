package preemption

import (
	"context"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// spare lets the extenders choose among the candidates and their victims. It returns at least one candidate, or a
// status that says why there is none. A node on which they see no victim is the only candidate left: nothing is better.
//
// It costs a request to each such extender, in the scheduling goroutine.
func (p search) spare(ctx context.Context, pod *model.PodInfo, list []*candidate) ([]*candidate, *framework.Status) {
	victims := make(map[string]framework.Victims, len(list))
	for _, c := range list {
		victims[c.node] = framework.Victims{Pods: c.victims, Violations: int64(c.violations)}
	}
	left, err := p.profile.SpareVictims(ctx, pod, victims)
	if err != nil {
		return nil, framework.AsStatus(err)
	}
	var out []*candidate
	for _, c := range list {
		v, ok := left[c.node]
		if !ok {
			continue
		}
		chosen := &candidate{node: c.node, victims: v.Pods, violations: int(v.Violations)}
		if len(v.Pods) == 0 {
			return []*candidate{chosen}, nil
		}
		out = append(out, chosen)
	}
	if len(out) == 0 {
		const why = "preemption: no candidate node for preemption was left by extenders"
		return nil, framework.NewStatus(framework.Unschedulable, why)
	}
	return out, nil
}
