package preemption

import (
	policyv1 "k8s.io/api/policy/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// search looks for victims for one pod, with the plug-ins of the profile that called PostFilter.
type search struct {
	*Plugin
	profile framework.Handle
}

// candidates tries the nodes whose refusal could be resolved, and returns those where victims were found. refusals says
// why the others are no candidates. st is an error's.
//
// A node is no candidate if its refusal cannot be resolved by evictions (a selector, a taint), or if it has no pod of
// lower priority (Lowest). The walk begins anywhere, so that not the same nodes lose their pods every time, and ends
// when enough candidates are found.
func (p search) candidates(
	state *framework.CycleState, pod *model.PodInfo, d *framework.Diagnosis,
) (found []*candidate, refusals *framework.Diagnosis, st *framework.Status) {
	refusals = framework.NewDiagnosis(d.Snapshot)
	unhelpful := framework.NewStatus(framework.UnschedulableAndUnresolvable, notHelpful)
	none := framework.NewStatus(framework.UnschedulableAndUnresolvable, noVictims)
	var possible []*model.NodeInfo
	for n := range d.Snapshot.All {
		st := d.Of(n)
		switch {
		case st != nil && st.Code == framework.UnschedulableAndUnresolvable:
			refusals.Reject(n, unhelpful)
		case n.Lowest >= model.Priority(pod.Pod):
			refusals.Reject(n, none)
		default:
			possible = append(possible, n)
		}
	}
	if len(possible) == 0 {
		return nil, refusals, nil
	}
	// Only now: many pods get no further, and PreFilter and the budgets cost something.
	budgets := p.Budgets.Budgets()
	state, kept, st := p.prepare(state, pod, d, budgets)
	if !st.IsSuccess() {
		return nil, nil, st
	}
	want := p.enough(d.Snapshot.Count)
	first := p.start(len(possible))
	for i := range possible {
		n := possible[(first+i)%len(possible)]
		nominated := p.Nominator.On(n.Name(), pod)
		c, st := kept.get(n, nominated, func() (*candidate, *framework.Status) {
			return p.try(state, pod, n, nominated, budgets)
		})
		if c == nil {
			refusals.Reject(n, st)
			continue
		}
		if found = append(found, c); len(found) >= want {
			break
		}
	}
	return found, refusals, nil
}

// prepare returns the state for filters, and what is kept of earlier pods if each node alone decides, else nil.
//
// Where each node alone decides, the findings of an earlier pod of the same class and priority hold as long as the node
// is unchanged: a Deployment that preempts with hundreds of pods looks at each node once.
func (p search) prepare(
	state *framework.CycleState, pod *model.PodInfo, d *framework.Diagnosis, budgets []*policyv1.PodDisruptionBudget,
) (*framework.CycleState, *tries, *framework.Status) {
	var nominated []*model.PodInfo
	for _, list := range p.Nominator.Rivals(pod) {
		nominated = append(nominated, list...)
	}
	if class, alone, ok := p.profile.Alone(pod, d.Snapshot, nominated); ok {
		return alone, p.memory.of(kind{class, model.Priority(pod.Pod)}, budgets), nil
	}
	if d.Prepare != nil {
		return state, nil, d.Prepare()
	}
	return state, nil, nil
}
