package interpodaffinity

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// name of the plug-in.
const name = "InterPodAffinity"

// Reasons why a node is refused.
const (
	reasonAffinity = "node(s) didn't match pod affinity rules"
	reasonAnti     = "node(s) didn't match pod anti-affinity rules"
	reasonExisting = "node(s) didn't satisfy existing pods anti-affinity rules"
)

// Plugin is the InterPodAffinity plug-in.
type Plugin struct {
	Namespaces framework.Namespaces
	// HardWeight is what a running pod's required affinity to the pod counts in the score; upstream's default is 1.
	HardWeight int32
	// IgnorePreferred: what running pods want near them, or not, does not count in the score of a pod that says nothing
	// like that itself.
	IgnorePreferred bool
}

var (
	_ framework.PreFilter           = (*Plugin)(nil)
	_ framework.PreFilterExtensions = (*Plugin)(nil)
	_ framework.Filter              = (*Plugin)(nil)
	_ framework.PreScore            = (*Plugin)(nil)
	_ framework.Score               = (*Plugin)(nil)
	_ framework.Normalizer          = (*Plugin)(nil)
	_ framework.Tracking            = (*Plugin)(nil)
)

// Name is the plug-in's name.
func (*Plugin) Name() string { return name }

// domain is a value of a topology key.
type domain struct{ key, value string }

// counts are the facts of all running pods, by kind and domain.
type counts struct {
	*rules
	by map[kind]map[domain]int64
}

func newCounts(r *rules) *counts {
	return &counts{rules: r, by: map[kind]map[domain]int64{affinity: {}, anti: {}, existing: {}, score: {}}}
}

// CloneState copies the counts.
func (c *counts) CloneState() any {
	n := &counts{rules: c.rules, by: map[kind]map[domain]int64{}}
	for k, m := range c.by {
		n.by[k] = maps.Clone(m)
	}
	return n
}

func (c *counts) add(other *model.PodInfo, node *corev1.Node, sign int64) {
	c.facts(other, func(k kind, key string, by int64) {
		value, ok := node.Labels[key]
		if !ok {
			return
		}
		d := domain{key, value}
		if c.by[k][d] += sign * by; c.by[k][d] == 0 && k != score {
			delete(c.by[k], d)
		}
	})
}

func (p *Plugin) count(pod *model.PodInfo, s *model.Snapshot) *counts {
	c := newCounts(p.rules(pod))
	own := pod.HasTerms()
	for n := range s.All {
		list := n.WithTerms
		if own {
			list = n.Pods
		}
		for _, other := range list {
			c.add(other, n.Node, 1)
		}
	}
	return c
}

// PreFilter counts.
func (p *Plugin) PreFilter(state *framework.CycleState, pod *model.PodInfo, s *model.Snapshot) (map[string]bool,
	*framework.Status) {
	if !pod.HasTerms() && s.WithTerms == 0 {
		return nil, framework.NewStatus(framework.Skip)
	}
	state.Write(name, p.count(pod, s))
	return nil, nil
}

// AddPod counts a pod in.
func (p *Plugin) AddPod(state *framework.CycleState, _, added *model.PodInfo, node *model.NodeInfo) {
	if c, ok := state.Read(name).(*counts); ok {
		c.add(added, node.Node, 1)
	}
}

// RemovePod counts a pod out.
func (p *Plugin) RemovePod(state *framework.CycleState, _, removed *model.PodInfo, node *model.NodeInfo) {
	if c, ok := state.Read(name).(*counts); ok {
		c.add(removed, node.Node, -1)
	}
}

// Filter checks the required terms of the pod, and those of running pods that are about it.
func (p *Plugin) Filter(state *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) *framework.Status {
	c, ok := state.Read(name).(*counts)
	if !ok {
		return nil
	}
	labels := node.Node.Labels
	if !c.near(labels, pod) {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, reasonAffinity)
	}
	for i := range c.terms.AntiAffinity {
		key := c.terms.AntiAffinity[i].TopologyKey
		if v, ok := labels[key]; ok && c.by[anti][domain{key, v}] > 0 {
			return framework.NewStatus(framework.Unschedulable, reasonAnti)
		}
	}
	for d, n := range c.by[existing] {
		if v, ok := labels[d.key]; ok && v == d.value && n > 0 {
			return framework.NewStatus(framework.Unschedulable, reasonExisting)
		}
	}
	return nil
}

// near checks the required affinity terms. The first pod of a group that wants to be near itself may go anywhere.
func (c *counts) near(labels map[string]string, pod *model.PodInfo) bool {
	there := true
	for i := range c.terms.Affinity {
		key := c.terms.Affinity[i].TopologyKey
		v, ok := labels[key]
		if !ok {
			return false
		}
		there = there && c.by[affinity][domain{key, v}] > 0
	}
	return there || len(c.by[affinity]) == 0 && c.aboutAll(pod)
}

const scoreKey = name + "/score"

// PreScore counts again: the counts of PreFilter may have been changed.
func (p *Plugin) PreScore(state *framework.CycleState, pod *model.PodInfo, s *model.Snapshot,
	_ []*model.NodeInfo) *framework.Status {
	if !pod.HasTerms() && s.WithTerms == 0 {
		return framework.NewStatus(framework.Skip)
	}
	c := p.count(pod, s)
	if len(c.by[score]) == 0 {
		return framework.NewStatus(framework.Skip)
	}
	state.Write(scoreKey, c)
	return nil
}

// Score sums the weights in the node's domains.
func (p *Plugin) Score(state *framework.CycleState, _ *model.PodInfo, node *model.NodeInfo) int64 {
	c, ok := state.Read(scoreKey).(*counts)
	if !ok {
		return 0
	}
	var sum int64
	for d, w := range c.by[score] {
		if v, ok := node.Node.Labels[d.key]; ok && v == d.value {
			sum += w
		}
	}
	return sum
}

// NormalizeScore spreads the scores.
func (p *Plugin) NormalizeScore(_ *framework.CycleState, _ *model.PodInfo, _ []*model.NodeInfo, scores []int64) {
	normalize(scores)
}

// EventsToRegister: pods of interest come, go or change, or nodes and namespaces do.
func (p *Plugin) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{
		{Kind: clusterevent.AssignedPod, Action: clusterevent.Add | clusterevent.Delete | clusterevent.UpdateLabels,
			Hint: p.wanted, Reads: model.KeyOf(p.ownTerms)},
		{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete | clusterevent.UpdateLabels, When: keptAway,
			Hint: p.unwanted, Reads: model.KeyOf(identity)},
		{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateLabels},
		{Kind: clusterevent.Node, Action: clusterevent.Add | clusterevent.UpdateLabels},
		{Kind: clusterevent.Namespace, Action: clusterevent.Add | clusterevent.Update},
	}
}

// sides are the pods that an event is about: what was, and what is.
func sides(e clusterevent.Event) []*model.PodInfo {
	var out []*model.PodInfo
	for _, side := range []any{e.Old, e.New} {
		if p, ok := side.(*model.PodInfo); ok && p != nil {
			out = append(out, p)
		}
	}
	return out
}

// wanted: a pod that all required terms of the pod are about came, or one that it keeps away from went or changed. A
// pod that wants to be with pods like itself may be the first of them again when another one went.
func (p *Plugin) wanted(pod *model.PodInfo, e clusterevent.Event) bool {
	r := p.rules(pod)
	for _, other := range sides(e) {
		if r.aboutAll(other) && (e.Action != clusterevent.Delete || r.aboutAll(pod)) {
			return true
		}
		for i := range r.terms.AntiAffinity {
			if e.Action != clusterevent.Add && r.about(&r.terms.AntiAffinity[i], other) {
				return true
			}
		}
	}
	return false
}

// ownTerms is what wanted reads of the pod.
func (p *Plugin) ownTerms(pod *model.PodInfo, k *model.Key) {
	if pod.Terms == nil {
		return
	}
	k.Bool(p.rules(pod).aboutAll(pod))
	for _, list := range [][]model.AffinityTerm{pod.Terms.Affinity, pod.Terms.AntiAffinity} {
		k.Num(int64(len(list)))
		for i := range list {
			k.Str(list[i].ID)
		}
	}
}

// keptAway reports whether the event is about a pod that keeps others away.
func keptAway(e clusterevent.Event) bool {
	return slices.ContainsFunc(sides(e), (*model.PodInfo).HasRequiredAntiAffinity)
}

// unwanted: a pod that kept the pod away went or changed. Pods that each have labels of their own are asked for one by
// one, so this must be cheap.
func (p *Plugin) unwanted(pod *model.PodInfo, e clusterevent.Event) bool {
	for _, side := range [...]any{e.Old, e.New} {
		other, ok := side.(*model.PodInfo)
		if !ok || other == nil || other.Terms == nil {
			continue
		}
		for i := range other.Terms.AntiAffinity {
			if matches(p.Namespaces, &other.Terms.AntiAffinity[i], pod) {
				return true
			}
		}
	}
	return false
}

// identity is what unwanted reads of the pod: namespace and labels.
func identity(pod *model.PodInfo, k *model.Key) {
	k.Str(pod.Pod.Namespace)
	k.Pairs(pod.Pod.Labels)
}
