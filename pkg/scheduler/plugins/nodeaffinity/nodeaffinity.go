// Package nodeaffinity matches pods with nodes by the pod's node selector and node affinity, and prefers nodes by its
// preferred terms.
package nodeaffinity

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// name of the plug-in.
const name = "NodeAffinity"

// reason why a node is refused.
const reason = "node(s) didn't match Pod's node affinity/selector"

// reasonEnforced is why a node is refused that the plug-in's own rules do not match.
const reasonEnforced = "node(s) didn't match scheduler-enforced node affinity"

// Plugin is the NodeAffinity plug-in.
type Plugin struct {
	// Required and Preferred hold for every pod besides its own rules; nil: nothing does.
	Required  *nodeaffinity.NodeSelector
	Preferred *nodeaffinity.PreferredSchedulingTerms
}

var (
	_ framework.PreFilter   = Plugin{}
	_ framework.Filter      = Plugin{}
	_ framework.PreScore    = Plugin{}
	_ framework.Score       = Plugin{}
	_ framework.Normalizer  = Plugin{}
	_ framework.NodeLocal   = Plugin{}
	_ framework.FieldReader = Plugin{}
)

// Name is the plug-in's name.
func (Plugin) Name() string { return name }

// Fields returns the rules of a pod about its nodes.
func (Plugin) Fields() framework.Fields {
	return framework.Fields{Pod: []string{"spec.nodeSelector", "spec.affinity.nodeAffinity"}}
}

// Reads the node selector and the node affinity.
func (Plugin) Reads(pod *model.PodInfo, k *model.Key) { k.NodeRules(pod.Pod) }

func required(pod *corev1.Pod) *corev1.NodeSelector {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// PreFilter parses the rules. If every required term names nodes by metadata.name, only those are possible.
func (p Plugin) PreFilter(state *framework.CycleState, pod *model.PodInfo, _ *model.Snapshot) (map[string]bool,
	*framework.Status) {
	terms := required(pod.Pod)
	if terms == nil && len(pod.Pod.Spec.NodeSelector) == 0 && p.Required == nil {
		return nil, framework.NewStatus(framework.Skip)
	}
	state.Write(name, nodeaffinity.GetRequiredNodeAffinity(pod.Pod))
	names := named(terms)
	if names != nil && len(names) == 0 {
		return nil, framework.NewStatus(framework.UnschedulableAndUnresolvable, "pod affinity terms conflict")
	}
	return names, nil
}

// named returns the nodes that the terms allow by name, nil if some term allows others too.
func named(terms *corev1.NodeSelector) map[string]bool {
	if terms == nil || len(terms.NodeSelectorTerms) == 0 {
		return nil
	}
	all := map[string]bool{}
	for _, t := range terms.NodeSelectorTerms {
		var term map[string]bool
		for _, f := range t.MatchFields {
			if f.Key != "metadata.name" || f.Operator != corev1.NodeSelectorOpIn {
				continue
			}
			values := map[string]bool{}
			for _, v := range f.Values {
				if term == nil || term[v] {
					values[v] = true
				}
			}
			term = values
		}
		if term == nil {
			return nil
		}
		for v := range term {
			all[v] = true
		}
	}
	return all
}

// Filter refuses nodes that the selector or the required terms do not match.
func (p Plugin) Filter(state *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) *framework.Status {
	if p.Required != nil && !p.Required.Match(node.Node) {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, reasonEnforced)
	}
	rules, ok := state.Read(name).(nodeaffinity.RequiredNodeAffinity)
	if !ok {
		rules = nodeaffinity.GetRequiredNodeAffinity(pod.Pod)
	}
	if match, _ := rules.Match(node.Node); !match {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, reason)
	}
	return nil
}

const preferredKey = name + "/preferred"

// PreScore parses the preferred terms.
func (p Plugin) PreScore(state *framework.CycleState, pod *model.PodInfo, _ *model.Snapshot,
	_ []*model.NodeInfo) *framework.Status {
	a := pod.Pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
		if p.Preferred == nil {
			return framework.NewStatus(framework.Skip)
		}
		return nil
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		return framework.AsStatus(err)
	}
	state.Write(preferredKey, terms)
	return nil
}

// Score sums the weights of the preferred terms that match.
func (p Plugin) Score(state *framework.CycleState, _ *model.PodInfo, node *model.NodeInfo) int64 {
	var score int64
	if p.Preferred != nil {
		score = p.Preferred.Score(node.Node)
	}
	if terms, ok := state.Read(preferredKey).(*nodeaffinity.PreferredSchedulingTerms); ok {
		score += terms.Score(node.Node)
	}
	return score
}

// NormalizeScore gives the node with the largest sum the most.
func (Plugin) NormalizeScore(_ *framework.CycleState, _ *model.PodInfo, _ []*model.NodeInfo, scores []int64) {
	framework.DefaultNormalize(false, scores)
}

// EventsToRegister: a matching node comes, or a node's labels change so that it matches.
func (p Plugin) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{
		{Kind: clusterevent.Node, Action: clusterevent.Add | clusterevent.UpdateLabels, Reads: model.KeyOf(p.Reads),
			Hint: func(pod *model.PodInfo, e clusterevent.Event) bool {
				n, ok := e.New.(*corev1.Node)
				if !ok {
					return true
				}
				if names := named(required(pod.Pod)); names != nil && !names[n.Name] {
					return false // pods of a DaemonSet are asked for one by one: do not parse the rules of each
				}
				match, _ := nodeaffinity.GetRequiredNodeAffinity(pod.Pod).Match(n)
				return match && (p.Required == nil || p.Required.Match(n))
			}}}
}
