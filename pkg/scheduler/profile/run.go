package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// RunPreEnqueue returns the first refusal. The queue calls it under its lock: plug-ins must be quick here.
func (p *Profile) RunPreEnqueue(pod *model.PodInfo) *framework.Status {
	for _, pl := range p.preEnqueues {
		if s := pl.PreEnqueue(pod); !s.IsSuccess() {
			return s.WithPlugin(pl.Name())
		}
	}
	return nil
}

// RunPreFilter prepares the state for Filter. names is nil if every node is possible; restricted names the plug-ins
// that made names smaller.
func (p *Profile) RunPreFilter(state *framework.CycleState, pod *model.PodInfo, s *model.Snapshot) (
	names map[string]bool, restricted []string, status *framework.Status,
) {
	return RunPreFilters(p.PreFilters, state, pod, s)
}

// RunPreFilters does what RunPreFilter does, for some of the plug-ins.
//
// Skip takes a plug-in out of Filter for this pod. A set of names limits the decision to these nodes, which is how a
// pod of a DaemonSet costs one node.
func RunPreFilters(list []framework.PreFilter, state *framework.CycleState, pod *model.PodInfo, s *model.Snapshot) (
	names map[string]bool, restricted []string, status *framework.Status,
) {
	for _, pl := range list {
		begun := state.Laps.Begin()
		only, st := pl.PreFilter(state, pod, s)
		state.Laps.End("PreFilter", pl.Name(), begun)
		if st.IsSkip() {
			state.SkipFilter(pl.Name())
			continue
		}
		if !st.IsSuccess() {
			return nil, nil, st.WithPlugin(pl.Name())
		}
		if only == nil {
			continue
		}
		restricted = append(restricted, pl.Name())
		names = intersect(names, only)
		if len(names) == 0 {
			msg := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v simultaneously", restricted)
			if len(restricted) == 1 {
				msg = fmt.Sprintf("node(s) didn't satisfy plugin %v", restricted[0])
			}
			refusal := framework.NewStatus(framework.UnschedulableAndUnresolvable, msg)
			return nil, restricted, refusal.WithPlugin(pl.Name())
		}
	}
	return names, restricted, nil
}

func intersect(a, b map[string]bool) map[string]bool {
	if a == nil {
		return b
	}
	out := map[string]bool{}
	for k := range a {
		if b[k] {
			out[k] = true
		}
	}
	return out
}

// RunFilter returns the first refusal of pod by node.
//
// The order is that of the configuration; later plug-ins are not asked, so the reason in the pod's condition is the
// first.
func (p *Profile) RunFilter(state *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) *framework.Status {
	for _, pl := range p.Filters {
		if state.SkipsFilter(pl.Name()) {
			continue
		}
		if s := pl.Filter(state, pod, node); !s.IsSuccess() {
			return s.WithPlugin(pl.Name())
		}
	}
	return nil
}

// Refusals returns the refusals of pod by node of all filters, in their order: what RunFilter would return one after
// the other if the reasons went away.
//
// It is for explanations. A decision needs only the first.
func (p *Profile) Refusals(
	state *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo,
) (all []*framework.Status) {
	for _, pl := range p.Filters {
		if state.SkipsFilter(pl.Name()) {
			continue
		}
		if s := pl.Filter(state, pod, node); !s.IsSuccess() {
			all = append(all, s.WithPlugin(pl.Name()))
		}
	}
	return all
}

// AddPod updates the plug-ins' prepared state as if added were on node.
//
// Preemption tries victims with it: the state is a clone, and costs no PreFilter for each try.
func (p *Profile) AddPod(state *framework.CycleState, pod, added *model.PodInfo, node *model.NodeInfo) {
	for _, pl := range p.PreFilters {
		if x, ok := pl.(framework.PreFilterExtensions); ok && !state.SkipsFilter(pl.Name()) {
			x.AddPod(state, pod, added, node)
		}
	}
}

// RemovePod updates the plug-ins' prepared state as if removed were no longer on node.
func (p *Profile) RemovePod(state *framework.CycleState, pod, removed *model.PodInfo, node *model.NodeInfo) {
	for _, pl := range p.PreFilters {
		if x, ok := pl.(framework.PreFilterExtensions); ok && !state.SkipsFilter(pl.Name()) {
			x.RemovePod(state, pod, removed, node)
		}
	}
}

// RunPostFilter calls the plug-ins until one finds a way out, and returns the node that the pod is nominated to from
// now on. A plug-in without a way out may name the node that the pod still waits for. If no plug-in finds one, the
// status has the reasons of all.
//
// An error ends the search; a refusal goes on with the next plug-in.
func (p *Profile) RunPostFilter(
	ctx context.Context, a framework.Activator, state *framework.CycleState, pod *model.PodInfo, d *framework.Diagnosis,
) (string, *framework.Status) {
	kept, refused := "", framework.NewStatus(framework.Unschedulable)
	for _, pl := range p.PostFilters {
		begun := state.Laps.Begin()
		node, s := pl.PostFilter(ctx, p.Handle(a), state, pod, d)
		state.Laps.End("PostFilter", pl.Name(), begun)
		s = s.WithPlugin(pl.Name())
		if s.IsSuccess() || !s.IsRejected() {
			return node, s
		}
		kept = cmp.Or(kept, node)
		refused.Code, refused.Plugin, refused.Reasons = s.Code, s.Plugin, append(refused.Reasons, s.Reasons...)
	}
	return kept, refused
}

// RunScores rates the nodes: the weighted sum of all plug-ins' normalized scores and the extenders', in the order of
// nodes.
//
// Each plug-in's scores are normalized before its weight counts. Skip in PreScore takes a plug-in out for this pod.
func (p *Profile) RunScores(
	ctx context.Context, state *framework.CycleState, pod *model.PodInfo, s *model.Snapshot, nodes []*model.NodeInfo,
) ([]int64, *framework.Status) {
	total := make([]int64, len(nodes))
	st := p.EachScore(state, pod, s, nodes, func(pl Weighted, scores []int64) {
		for i := range total {
			total[i] += pl.Weight * scores[i]
		}
	})
	if !st.IsSuccess() {
		return nil, st
	}
	for _, e := range p.extended(pod) {
		_ = e.ScoreNodes(ctx, pod, nodes, total) // without its scores those of the others decide
	}
	return total, nil
}

// EachScore rates the nodes and calls yield with each plug-in that has something to say and with its normalized scores,
// in the order of nodes. The list is used again after each call.
func (p *Profile) EachScore(
	state *framework.CycleState, pod *model.PodInfo, s *model.Snapshot, nodes []*model.NodeInfo,
	yield func(pl Weighted, scores []int64),
) *framework.Status {
	for _, pl := range p.PreScores {
		begun := state.Laps.Begin()
		st := pl.PreScore(state, pod, s, nodes)
		state.Laps.End("PreScore", pl.Name(), begun)
		switch {
		case st.IsSkip():
			state.SkipScore(pl.Name())
		case !st.IsSuccess():
			return st.WithPlugin(pl.Name())
		}
	}
	scores := make([]int64, len(nodes))
	for _, pl := range p.Scores {
		if state.SkipsScore(pl.Name()) {
			continue
		}
		begun := state.Laps.Begin()
		// scores is used again by each plug-in: the loop overwrites all of it.
		for i, n := range nodes {
			scores[i] = pl.Score.Score(state, pod, n)
		}
		if norm, ok := pl.Score.(framework.Normalizer); ok {
			norm.NormalizeScore(state, pod, nodes, scores)
		}
		state.Laps.End("Score", pl.Name(), begun)
		yield(pl, scores)
	}
	return nil
}

// RunReserve reserves; on a refusal the caller runs Unreserve.
//
// It runs in the scheduling goroutine, before the next decision, which has to see what was reserved.
func (p *Profile) RunReserve(
	ctx context.Context, state *framework.CycleState, pod *model.PodInfo, node string,
) *framework.Status {
	for _, pl := range p.reserves {
		begun := state.Laps.Begin()
		s := pl.Reserve(ctx, state, pod, node)
		state.Laps.End("Reserve", pl.Name(), begun)
		if !s.IsSuccess() {
			return s.WithPlugin(pl.Name())
		}
	}
	return nil
}

// RunUnreserve undoes RunReserve, in the opposite order.
//
// It is called after any failure from Reserve on, also of plug-ins that did not reserve: Unreserve must bear that.
func (p *Profile) RunUnreserve(ctx context.Context, state *framework.CycleState, pod *model.PodInfo, node string) {
	for i := len(p.reserves) - 1; i >= 0; i-- {
		p.reserves[i].Unreserve(ctx, state, pod, node)
	}
}

// RunPreBind runs until the first failure.
//
// It and what follows run in the goroutine of the pod's binding.
func (p *Profile) RunPreBind(
	ctx context.Context, state *framework.CycleState, pod *model.PodInfo, node string,
) *framework.Status {
	for _, pl := range p.PreBinds {
		begun := state.Laps.Begin()
		s := pl.PreBind(ctx, state, pod, node)
		state.Laps.End("PreBind", pl.Name(), begun)
		if !s.IsSuccess() {
			return s.WithPlugin(pl.Name())
		}
	}
	return nil
}

// Lingers reports whether RunPreBind may wait for others.
func (p *Profile) Lingers(state *framework.CycleState, pod *model.PodInfo) bool {
	for _, pl := range p.PreBinds {
		if l, ok := pl.(framework.Lingering); ok && l.Lingers(state, pod) {
			return true
		}
	}
	return false
}

// RunBind lets the extender bind that does so for the pod, else the first plug-in that does not Skip.
//
// The first extender that binds replaces the plug-ins.
func (p *Profile) RunBind(
	ctx context.Context, state *framework.CycleState, pod *model.PodInfo, node string,
) *framework.Status {
	for _, e := range p.extended(pod) {
		if e.Binds() {
			return framework.AsStatus(e.Bind(ctx, pod, node)).WithPlugin(framework.ExtenderName)
		}
	}
	for _, pl := range p.binds {
		begun := state.Laps.Begin()
		s := pl.Bind(ctx, state, pod, node)
		state.Laps.End("Bind", pl.Name(), begun)
		if !s.IsSkip() {
			return s.WithPlugin(pl.Name())
		}
	}
	return framework.AsStatus(errors.New("every bind plugin skipped the pod"))
}

// RunPostBind calls every PostBind plug-in.
func (p *Profile) RunPostBind(ctx context.Context, state *framework.CycleState, pod *model.PodInfo, node string) {
	for _, pl := range p.postBinds {
		pl.PostBind(ctx, state, pod, node)
	}
}
