package profile

import (
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// declare records what the plug-in's results depend on, from the strictest to the loosest: NodeLocal on fields of the
// pod and the node alone, Tracking also on pods elsewhere in a way it can follow, and the rest on anything (slow).
func (p *Profile) declare(pl framework.Plugin) {
	if local, ok := pl.(framework.NodeLocal); ok {
		p.reads = append(p.reads, model.KeyOf(local.Reads))
		return
	}
	if t, ok := pl.(framework.Tracking); ok {
		p.tracking[pl.Name()] = t
		return
	}
	switch pl.(type) {
	case framework.PreFilter, framework.Filter, framework.PreScore, framework.Score:
		p.slow = append(p.slow, pl)
	}
}

// Class returns a key of everything in the pod that the NodeLocal plug-ins read. These plug-ins give pods of one class
// the same verdicts and scores on every node. It returns false if a slow plug-in or an extender concerns the pod.
//
// The decider keeps verdicts by class: a thousand pods of one Deployment cost one evaluation of each changed node.
func (p *Profile) Class(pod *model.PodInfo) (string, bool) {
	for _, pl := range p.slow {
		if s, ok := pl.(framework.Selective); !ok || s.Concerns(pod) {
			return "", false
		}
	}
	if len(p.extended(pod)) > 0 {
		return "", false
	}
	k := model.NewKey(256)
	for _, reads := range p.reads {
		k.Str(reads(pod))
	}
	return k.String(), true
}

// Alone returns the pod's class and a state for RunFilter if each node alone decides whether the pod fits there: no
// slow plug-in concerns the pod, and no Tracking plug-in could refuse it a node because of pods on other nodes.
// Otherwise it returns false.
//
// Preemption asks it: if each node decides alone, victims on one node never change the answer of another.
func (p *Profile) Alone(pod *model.PodInfo, s *model.Snapshot, nominated []*model.PodInfo) (
	class string, state *framework.CycleState, ok bool,
) {
	if class, ok = p.Class(pod); !ok {
		return "", nil, false
	}
	state = framework.NewCycleState()
	// The pod has a class, so no slow plug-in concerns it. Their PreFilter has not run, and their Filter must not
	// either.
	for _, pl := range p.slow {
		state.SkipFilter(pl.Name())
	}
	for name, t := range p.tracking {
		if what := t.Track(pod, s, nominated); what.New != nil && !what.ScoresOnly && p.Filtering(name) {
			return "", nil, false
		}
		state.SkipFilter(name)
	}
	var local []framework.PreFilter
	for _, pl := range p.PreFilters {
		if _, ok := pl.(framework.NodeLocal); ok {
			local = append(local, pl)
		}
	}
	_, _, st := RunPreFilters(local, state, pod, s)
	return class, state, st.IsSuccess()
}
