package podtopologyspread

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// constraint is a spread constraint, parsed.
type constraint = model.SpreadConstraint

// rules are all that a pod says about spreading.
type rules struct {
	hard, soft []constraint
	// all keys of soft constraints must be on a node for it to count; not so for the default constraints.
	requireAll bool
	affinity   nodeaffinity.RequiredNodeAffinity
	namespace  string
	pod        *model.PodInfo
}

func (p *Plugin) rules(pod *model.PodInfo) *rules {
	r := &rules{namespace: pod.Pod.Namespace, pod: pod, affinity: nodeaffinity.GetRequiredNodeAffinity(pod.Pod),
		requireAll: len(pod.Spread) > 0 || p.Defaults != nil}
	for _, c := range p.constraints(pod) {
		if c.Hard {
			r.hard = append(r.hard, c)
		} else {
			r.soft = append(r.soft, c)
		}
	}
	return r
}

// constraints are the pod's own, or else the default ones, for the pods that its workload selects.
func (p *Plugin) constraints(pod *model.PodInfo) []constraint {
	if len(pod.Spread) > 0 {
		return pod.Spread
	}
	sel := p.defaultSelector(pod.Pod)
	switch {
	case sel == nil:
		return nil
	case p.Defaults == nil:
		return []constraint{
			{TopologyKey: corev1.LabelHostname, MaxSkew: 3, MinDomains: 1, Selector: sel, HonorAffinity: true},
			{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 5, MinDomains: 1, Selector: sel, HonorAffinity: true},
		}
	}
	out := make([]constraint, 0, len(p.Defaults))
	for i := range p.Defaults {
		out = append(out, model.NewSpreadConstraint(&p.Defaults[i], sel))
	}
	return out
}

func (p *Plugin) defaultSelector(pod *corev1.Pod) labels.Selector {
	if p.Workloads == nil {
		return nil
	}
	return p.Workloads.SelectorFor(pod)
}

// counts reports whether pods on node count for c.
func (r *rules) counts(c *constraint, node *model.NodeInfo) bool {
	if c.HonorAffinity {
		if match, err := r.affinity.Match(node.Node); err != nil || !match {
			return false
		}
	}
	return !c.HonorTaints || model.Untolerated(r.pod.Pod, node.Node) == nil
}

// self is 1 if the pod itself matches c.
func (r *rules) self(c *constraint) int {
	if c.Selector.Matches(labels.Set(r.pod.Pod.Labels)) {
		return 1
	}
	return 0
}

// matching counts the pods on node that c is about.
func (r *rules) matching(c *constraint, node *model.NodeInfo) int {
	return model.CountMatching(node.Pods, r.namespace, c.Selector)
}

// hasKeys reports whether the node is in a domain of each constraint.
func hasKeys(node *model.NodeInfo, list []constraint) bool {
	for i := range list {
		if _, ok := node.Node.Labels[list[i].TopologyKey]; !ok {
			return false
		}
	}
	return true
}

// weight makes a pod in a key with few domains count more.
func weight(domains int) float64 { return math.Log(float64(domains + 2)) }

// part is what one constraint adds to a node's score: less is better.
func part(count int, c *constraint, weight float64) float64 {
	return float64(count)*weight + float64(c.MaxSkew-1)
}

// ignored marks nodes without the needed keys in scores.
const ignored = -1

// normalize turns sums, where less is better, into 0 to MaxNodeScore; ignored nodes get 0.
func normalize(scores []int64) {
	lo, hi := int64(math.MaxInt64), int64(0)
	for _, s := range scores {
		if s != ignored {
			lo, hi = min(lo, s), max(hi, s)
		}
	}
	for i, s := range scores {
		switch {
		case s == ignored:
			scores[i] = 0
		case hi == 0:
			scores[i] = framework.MaxNodeScore
		default:
			scores[i] = framework.MaxNodeScore * (hi + lo - s) / hi
		}
	}
}
