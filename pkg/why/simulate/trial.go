package simulate

import (
	"context"
	"errors"
	"fmt"

	"bonsai/pkg/scheduler/decide"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/profile"
)

// Trial is one pod on the cluster as it was when Try was called.
type Trial struct {
	c     *Cluster
	pod   *model.PodInfo
	state *framework.CycleState
	// Refused is why the pod is out as a whole, nil if it is not.
	Refused *framework.Status
	// names are the only possible nodes, nil for all; because of the plug-in by.
	names map[string]bool
	by    string
}

// Try prepares the filters for a pod.
func (c *Cluster) Try(pod *model.PodInfo) *Trial {
	t := &Trial{c: c, pod: pod, state: framework.NewCycleState()}
	names, restricted, st := c.Profile.RunPreFilter(t.state, pod, c.Snapshot)
	c.visits += 1 + c.prepared(pod)
	if !st.IsSuccess() {
		t.Refused = st
		return t
	}
	if names != nil {
		t.names, t.by = names, restricted[0]
	}
	return t
}

// prepared is what preparing the filters costs: pods that are compared with others look at all nodes.
func (c *Cluster) prepared(pod *model.PodInfo) int {
	if pod.HasTerms() || len(pod.Spread) > 0 || c.Snapshot.WithTerms > 0 {
		return c.Snapshot.Count
	}
	return 0
}

// For returns the trial of a pod that asks for other amounts of resources and is equal otherwise, which filters do not
// prepare for.
func (t *Trial) For(pod *model.PodInfo) *Trial {
	other := *t
	other.pod = pod
	return &other
}

// On returns every reason why the pod does not fit on a node of the snapshot; none if it fits.
func (t *Trial) On(n *model.NodeInfo) []*framework.Status {
	t.c.visits++
	if t.Refused != nil {
		return []*framework.Status{t.Refused}
	}
	all := t.c.plain.Refusals(t.c.Profile, t.state, t.pod, n)
	if t.names != nil && !t.names[n.Name()] && len(all) == 0 {
		all = append(all, &framework.Status{Code: framework.UnschedulableAndUnresolvable, Plugin: t.by,
			Reasons: []string{"node(s) didn't satisfy plugin(s) [" + t.by + "]"}})
	}
	return all
}

// Gate returns why the scheduler does not look at a pod at all, nil if it does.
func (c *Cluster) Gate(pod *model.PodInfo) *framework.Status { return c.Profile.RunPreEnqueue(pod) }

// With calls do while n is in the place of the node of its slot. It must be a copy of that node.
func (c *Cluster) With(n *model.NodeInfo, do func()) {
	before := c.Snapshot.Nodes[n.Slot]
	c.Snapshot.Set(n.Slot, n)
	defer c.Snapshot.Set(n.Slot, before)
	do()
}

// Decide returns the decision of the scheduler for a pod: its nodes, or why there is none. Any other error is one that
// the scheduler would report, too.
func (c *Cluster) Decide(ctx context.Context, pod *model.PodInfo) (
	r decide.Result, refused *framework.Diagnosis, err error) {
	c.visits += c.Snapshot.Count + c.prepared(pod)
	if c.Snapshot.Count == 0 {
		return r, framework.NewDiagnosis(c.Snapshot), nil
	}
	state := framework.NewCycleState()
	r, err = c.plain.Decide(ctx, c.Profile, state, pod, c.Snapshot)
	if fit, ok := errors.AsType[*framework.FitError](err); ok {
		return r, fit.Diagnosis, nil
	}
	return r, nil, err
}

// Victims returns the pods that the scheduler would evict for a pod that fits nowhere, and where. Without any, why says
// what its preemption says.
func (c *Cluster) Victims(ctx context.Context, pod *model.PodInfo) (node string, victims []*model.PodInfo, why string) {
	state := framework.NewCycleState()
	_, err := c.plain.Decide(ctx, c.Profile, state, pod, c.Snapshot)
	fit, ok := errors.AsType[*framework.FitError](err)
	if !ok {
		return "", nil, ""
	}
	node, victims, st := c.preemption.Foresee(ctx, c.Profile.Handle(nil), state, pod, fit.Diagnosis)
	return node, victims, st.Message()
}

// Score is what the scheduler's plug-ins say of the nodes on which a pod fits.
type Score struct {
	Nodes []string
	// Total are the weighted sums, by node; Plugins what each plug-in that has something to say adds to them.
	Total   []int64
	Plugins []PluginScore
}

// PluginScore is a plug-in's part of the sums.
type PluginScore struct {
	Name   string
	Weight int64
	Scores []int64 // of 0 to framework.MaxNodeScore each, without the weight
}

// Scores rates the nodes on which the pod fits.
func (t *Trial) Scores() (Score, error) {
	c, pod := t.c, t.pod
	var out Score
	var nodes []*model.NodeInfo
	for n := range c.Snapshot.All {
		if len(t.On(n)) == 0 {
			nodes, out.Nodes = append(nodes, n), append(out.Nodes, n.Name())
		}
	}
	if len(nodes) == 0 {
		return out, nil
	}
	out.Total = make([]int64, len(nodes))
	st := c.Profile.EachScore(t.state, pod, c.Snapshot, nodes, func(pl profile.Weighted, scores []int64) {
		p := PluginScore{Name: pl.Name(), Weight: pl.Weight, Scores: append([]int64(nil), scores...)}
		for i := range scores {
			out.Total[i] += pl.Weight * scores[i]
		}
		out.Plugins = append(out.Plugins, p)
	})
	if !st.IsSuccess() {
		return Score{}, fmt.Errorf("scoring nodes: %w", st.AsError())
	}
	return out, nil
}

// Place puts a pod on a node of the snapshot, as the scheduler assumes it there.
func (c *Cluster) Place(ctx context.Context, pod *model.PodInfo, node string) error {
	n := c.Snapshot.Get(node)
	if n == nil {
		return fmt.Errorf("there is no node %s", node)
	}
	state := framework.NewCycleState()
	if st := c.Profile.RunReserve(ctx, state, pod, node); !st.IsSuccess() {
		return fmt.Errorf("reserving node %s: %w", node, st.AsError())
	}
	assumed := *pod.Pod
	assumed.Spec.NodeName = node
	placed := n.Clone()
	placed.AddPod(Info(&assumed))
	c.Snapshot.Set(n.Slot, placed)
	c.nominator.Set(pod, "")
	return nil
}
