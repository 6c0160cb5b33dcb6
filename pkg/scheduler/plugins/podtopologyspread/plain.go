package podtopologyspread

import (
	"maps"
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// name of the plug-in.
const name = "PodTopologySpread"

// Reasons why a node is refused.
const (
	reason        = "node(s) didn't match pod topology spread constraints"
	reasonNoLabel = reason + " (missing required label)"
)

// Plugin is the PodTopologySpread plug-in.
type Plugin struct {
	// Workloads finds the pods to spread by default; nil spreads none by default.
	Workloads framework.Workloads
	// Defaults are the constraints of pods that have none, without selectors; nil: upstream's.
	Defaults []corev1.TopologySpreadConstraint
}

var (
	_ framework.PreFilter           = (*Plugin)(nil)
	_ framework.PreFilterExtensions = (*Plugin)(nil)
	_ framework.Filter              = (*Plugin)(nil)
	_ framework.PreScore            = (*Plugin)(nil)
	_ framework.Score               = (*Plugin)(nil)
	_ framework.Normalizer          = (*Plugin)(nil)
	_ framework.Tracking            = (*Plugin)(nil)
	_ framework.FieldReader         = (*Plugin)(nil)
)

// Name is the plug-in's name.
func (*Plugin) Name() string { return name }

// Fields returns what says which pods belong together, and which nodes count for a constraint.
func (*Plugin) Fields() framework.Fields {
	return framework.Fields{
		Pod: []string{
			"metadata.ownerReferences", "spec.tolerations", "spec.nodeSelector", "spec.affinity.nodeAffinity",
		},
		Node: []string{"spec.taints"},
	}
}

// filterState counts the matching pods per hard constraint and domain.
type filterState struct {
	*rules
	counts []map[string]int
}

// CloneState copies the counts.
func (s *filterState) CloneState() any {
	c := &filterState{rules: s.rules}
	for _, m := range s.counts {
		c.counts = append(c.counts, maps.Clone(m))
	}
	return c
}

// PreFilter counts.
func (p *Plugin) PreFilter(state *framework.CycleState, pod *model.PodInfo, s *model.Snapshot) (map[string]bool,
	*framework.Status) {
	r := p.rules(pod)
	if len(r.hard) == 0 {
		return nil, framework.NewStatus(framework.Skip)
	}
	st := &filterState{rules: r, counts: make([]map[string]int, len(r.hard))}
	for i := range r.hard {
		c := &r.hard[i]
		st.counts[i] = map[string]int{}
		for n := range s.All {
			if hasKeys(n, r.hard) && r.counts(c, n) {
				st.counts[i][n.Node.Labels[c.TopologyKey]] += r.matching(c, n)
			}
		}
	}
	state.Write(name, st)
	return nil, nil
}

// AddPod counts one more.
func (p *Plugin) AddPod(state *framework.CycleState, _, added *model.PodInfo, node *model.NodeInfo) {
	p.change(state, added, node, 1)
}

// RemovePod counts one less.
func (p *Plugin) RemovePod(state *framework.CycleState, _, removed *model.PodInfo, node *model.NodeInfo) {
	p.change(state, removed, node, -1)
}

func (p *Plugin) change(state *framework.CycleState, other *model.PodInfo, node *model.NodeInfo, by int) {
	st, ok := state.Read(name).(*filterState)
	if !ok || other.Pod.Namespace != st.namespace || other.Pod.DeletionTimestamp != nil || !hasKeys(node, st.hard) {
		return
	}
	for i := range st.hard {
		c := &st.hard[i]
		if !c.Selector.Empty() && st.rules.counts(c, node) && c.Selector.Matches(labels.Set(other.Pod.Labels)) {
			st.counts[i][node.Node.Labels[c.TopologyKey]] += by
		}
	}
}

// Filter refuses nodes in domains that have more pods than the emptiest domain by more than maxSkew.
func (p *Plugin) Filter(state *framework.CycleState, _ *model.PodInfo, node *model.NodeInfo) *framework.Status {
	st, ok := state.Read(name).(*filterState)
	if !ok {
		return nil
	}
	for i := range st.hard {
		c := &st.hard[i]
		value, ok := node.Node.Labels[c.TopologyKey]
		if !ok {
			return framework.NewStatus(framework.UnschedulableAndUnresolvable, reasonNoLabel)
		}
		least := math.MaxInt32
		for _, n := range st.counts[i] {
			least = min(least, n)
		}
		if len(st.counts[i]) < c.MinDomains {
			least = 0
		}
		if st.counts[i][value]+st.self(c)-least > c.MaxSkew {
			return framework.NewStatus(framework.Unschedulable, reason)
		}
	}
	return nil
}

const scoreKey = name + "/score"

// scoreState has the pods per soft constraint and domain, and the constraints' weights.
type scoreState struct {
	*rules
	counts  []map[string]int
	weights []float64
}

// PreScore counts.
func (p *Plugin) PreScore(state *framework.CycleState, pod *model.PodInfo, s *model.Snapshot,
	nodes []*model.NodeInfo) *framework.Status {
	r := p.rules(pod)
	if len(r.soft) == 0 {
		return framework.NewStatus(framework.Skip)
	}
	st := &scoreState{rules: r}
	for i := range r.soft {
		c := &r.soft[i]
		counts, hosts := map[string]int{}, 0
		for _, n := range nodes {
			if r.requireAll && !hasKeys(n, r.soft) {
				continue
			}
			hosts++
			if v, ok := n.Node.Labels[c.TopologyKey]; ok {
				counts[v] = 0
			}
		}
		if c.TopologyKey == corev1.LabelHostname {
			st.weights = append(st.weights, weight(hosts))
		} else {
			st.weights = append(st.weights, weight(len(counts)))
			st.fill(c, counts, s)
		}
		st.counts = append(st.counts, counts)
	}
	state.Write(scoreKey, st)
	return nil
}

// fill counts the pods of all nodes in the domains that are already in counts.
func (st *scoreState) fill(c *constraint, counts map[string]int, s *model.Snapshot) {
	for n := range s.All {
		if st.requireAll && !hasKeys(n, st.soft) || !st.rules.counts(c, n) {
			continue
		}
		v, ok := n.Node.Labels[c.TopologyKey]
		if _, possible := counts[v]; ok && possible {
			counts[v] += st.matching(c, n)
		}
	}
}

// Score sums the pods in the node's domains, weighted; less is better.
func (p *Plugin) Score(state *framework.CycleState, _ *model.PodInfo, node *model.NodeInfo) int64 {
	st, ok := state.Read(scoreKey).(*scoreState)
	if !ok {
		return 0
	}
	if st.requireAll && !hasKeys(node, st.soft) {
		return ignored
	}
	sum := 0.0
	for i := range st.soft {
		c := &st.soft[i]
		v, ok := node.Node.Labels[c.TopologyKey]
		if !ok {
			continue
		}
		count := st.counts[i][v]
		if c.TopologyKey == corev1.LabelHostname {
			count = st.matching(c, node)
		}
		sum += part(count, c, st.weights[i])
	}
	return int64(math.Round(sum))
}

// NormalizeScore makes less better.
func (p *Plugin) NormalizeScore(_ *framework.CycleState, _ *model.PodInfo, _ []*model.NodeInfo, scores []int64) {
	normalize(scores)
}

// EventsToRegister: matching pods come, go or change, domains appear or vanish, or the pod changes its labels.
func (p *Plugin) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{
		{Kind: clusterevent.AssignedPod,
			Action: clusterevent.Add | clusterevent.Delete | clusterevent.UpdateLabels | clusterevent.UpdateOther,
			Hint:   p.concerns, Reads: model.KeyOf(p.counted)},
		{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateLabels | clusterevent.UpdateTolerations},
		{Kind: clusterevent.Node,
			Action: clusterevent.Add | clusterevent.Delete | clusterevent.UpdateLabels | clusterevent.UpdateTaints},
	}
}

// counted is what concerns reads of the pod: of one that has the configuration's constraints, by what its workload is
// found.
func (p *Plugin) counted(pod *model.PodInfo, k *model.Key) {
	k.Str(pod.Pod.Namespace)
	for i := range pod.Spread {
		if pod.Spread[i].Hard {
			k.Str(pod.Spread[i].ID)
		}
	}
	if len(pod.Spread) == 0 && p.Defaults != nil {
		k.Pairs(pod.Pod.Labels)
		if owner := metav1.GetControllerOfNoCopy(pod.Pod); owner != nil {
			k.Str(string(owner.UID))
		}
	}
}

// concerns: one of the pod's constraints is about a pod that came, went or changed.
func (p *Plugin) concerns(pod *model.PodInfo, e clusterevent.Event) bool {
	constraints := p.constraints(pod)
	for _, side := range []any{e.Old, e.New} {
		other, ok := side.(*model.PodInfo)
		if !ok || other == nil || other.Pod.Namespace != pod.Pod.Namespace {
			continue
		}
		for i := range constraints {
			if c := &constraints[i]; c.Hard && c.Selector.Matches(labels.Set(other.Pod.Labels)) {
				return true
			}
		}
	}
	return false
}
