package decide

import (
	"context"
	"fmt"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/profile"
)

// Random returns a number in [0, n).
type Random func(n int) int

// Result is a decision with all that it was chosen from.
type Result struct {
	// Best are the nodes with the highest score; Node is one of them, chosen at random.
	Best []string
	Node string
	// Score of the best nodes; 0 when there was only one possible node.
	Score    int64
	Feasible int
}

// Plain decides by running every plug-in on every node.
type Plain struct {
	Nominator *model.Nominator
	Random    Random
}

// Decide returns the chosen node; the error is a *framework.FitError when no node fits.
func (d *Plain) Decide(ctx context.Context, p *profile.Profile, state *framework.CycleState, pod *model.PodInfo,
	s *model.Snapshot) (Result, error) {
	nodes, err := d.feasible(ctx, p, state, pod, s)
	if err != nil {
		return Result{}, err
	}
	if len(nodes) == 1 {
		return Result{Best: []string{nodes[0].Name()}, Node: nodes[0].Name(), Feasible: 1}, nil
	}
	scores, st := p.RunScores(ctx, state, pod, s, nodes)
	if !st.IsSuccess() {
		return Result{}, fmt.Errorf("scoring nodes: %w", st.AsError())
	}
	r := Result{Feasible: len(nodes), Score: scores[0]}
	for i, score := range scores {
		switch {
		case score > r.Score:
			r.Score, r.Best = score, append(r.Best[:0], nodes[i].Name())
		case score == r.Score:
			r.Best = append(r.Best, nodes[i].Name())
		}
	}
	r.Node = r.Best[d.Random(len(r.Best))]
	return r, nil
}

// feasible returns the nodes that pass all filters, at least one.
func (d *Plain) feasible(ctx context.Context, p *profile.Profile, state *framework.CycleState, pod *model.PodInfo,
	s *model.Snapshot) ([]*model.NodeInfo, error) {
	diagnosis := framework.NewDiagnosis(s)
	names, restricted, st := p.RunPreFilter(state, pod, s)
	if !st.IsSuccess() {
		return nil, rejected(pod, s, diagnosis, st)
	}
	if n := s.Get(d.nominated(pod)); n != nil {
		// Room was made there for this pod: no other node is as likely to fit, and none is looked at if it does.
		if st := filterWithNominated(p, d.Nominator, state, pod, n); st.IsSuccess() {
			kept, err := p.RunExtenders(ctx, pod, []*model.NodeInfo{n}, func(*model.NodeInfo, *framework.Status) {})
			if err == nil && len(kept) > 0 {
				return kept, nil
			}
		}
	}
	var out []*model.NodeInfo
	excluded := unnamed(restricted)
	for n := range s.All {
		if names != nil && !names[n.Name()] {
			diagnosis.Reject(n, excluded)
			continue
		}
		st := filterWithNominated(p, d.Nominator, state, pod, n)
		switch {
		case st.IsSuccess():
			out = append(out, n)
		case st.IsRejected():
			diagnosis.Reject(n, st)
		default:
			return nil, fmt.Errorf("filtering node %s: %w", n.Name(), st.AsError())
		}
	}
	out, err := p.RunExtenders(ctx, pod, out, diagnosis.Reject)
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, &framework.FitError{Pod: pod, Diagnosis: diagnosis}
	}
	return out, nil
}

// unnamed is the verdict on nodes that are not among those which the plug-ins named; nil if none named any.
func unnamed(restricted []string) *framework.Status {
	if len(restricted) == 0 {
		return nil
	}
	return &framework.Status{Code: framework.UnschedulableAndUnresolvable, Plugin: restricted[0],
		Reasons: []string{fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", restricted)}}
}

func (d *Plain) nominated(pod *model.PodInfo) string {
	if d.Nominator == nil {
		return ""
	}
	return d.Nominator.Of(pod.Pod.UID)
}

// rejected makes the error of a pod that PreFilter turned down.
func rejected(pod *model.PodInfo, s *model.Snapshot, d *framework.Diagnosis, st *framework.Status) error {
	if !st.IsRejected() {
		return fmt.Errorf("preparing filters: %w", st.AsError())
	}
	d.PreFilter = st.Message()
	for n := range s.All {
		d.Reject(n, st)
	}
	return &framework.FitError{Pod: pod, Diagnosis: d}
}

// filterWithNominated runs the filters twice where pods wait for room on the node: once as if they were there already,
// since the pod must not take their room, and once without, since it must not depend on them.
func filterWithNominated(p *profile.Profile, nominator *model.Nominator, state *framework.CycleState,
	pod *model.PodInfo, n *model.NodeInfo) *framework.Status {
	if with, node := joined(p, nominator, state, pod, n); node != nil {
		if st := p.RunFilter(with, pod, node); !st.IsSuccess() {
			return st
		}
	}
	return p.RunFilter(state, pod, n)
}

// joined returns the state and the node as if the pods that wait for room there were on it; nil if there are none.
func joined(p *profile.Profile, nominator *model.Nominator, state *framework.CycleState, pod *model.PodInfo,
	n *model.NodeInfo) (*framework.CycleState, *model.NodeInfo) {
	if nominator == nil {
		return nil, nil
	}
	waiting := nominator.On(n.Name(), pod)
	if len(waiting) == 0 {
		return nil, nil
	}
	with, node := state.Clone(), n.Clone()
	for _, w := range waiting {
		node.AddPod(w)
		p.AddPod(with, pod, w, node)
	}
	return with, node
}

// Refusals returns every reason why the node is out for pod, in the order of the filters; none if the pod fits. state
// is that of a PreFilter on the snapshot of the node. Decide gives the first of them.
func (d *Plain) Refusals(p *profile.Profile, state *framework.CycleState, pod *model.PodInfo,
	n *model.NodeInfo) []*framework.Status {
	if with, node := joined(p, d.Nominator, state, pod, n); node != nil {
		if all := p.Refusals(with, pod, node); len(all) > 0 {
			return all
		}
	}
	return p.Refusals(state, pod, n)
}
