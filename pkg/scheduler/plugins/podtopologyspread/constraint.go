package podtopologyspread

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"bonsai/pkg/scheduler/framework"
)

// constraint is a spread constraint, parsed.
type constraint struct {
	key        string
	maxSkew    int
	minDomains int
	selector   labels.Selector
	// honorAffinity and honorTaints leave nodes out of the count that the pod cannot use.
	honorAffinity, honorTaints bool
}

// rules are all that a pod says about spreading.
type rules struct {
	hard, soft []constraint
	// all keys of soft constraints must be on a node for it to count; not so for the default constraints.
	requireAll bool
	affinity   nodeaffinity.RequiredNodeAffinity
	namespace  string
	pod        *framework.PodInfo
}

func (p *Plugin) rules(pod *framework.PodInfo) (*rules, error) {
	r := &rules{namespace: pod.Pod.Namespace, pod: pod, affinity: nodeaffinity.GetRequiredNodeAffinity(pod.Pod), requireAll: true}
	spec := pod.Pod.Spec.TopologySpreadConstraints
	if len(spec) == 0 {
		r.requireAll = false
		if sel := p.defaultSelector(pod.Pod); sel != nil {
			r.soft = []constraint{
				{key: corev1.LabelHostname, maxSkew: 3, minDomains: 1, selector: sel, honorAffinity: true},
				{key: corev1.LabelTopologyZone, maxSkew: 5, minDomains: 1, selector: sel, honorAffinity: true},
			}
		}
		return r, nil
	}
	for i := range spec {
		c, err := parse(&spec[i], pod.Pod)
		if err != nil {
			return nil, err
		}
		if spec[i].WhenUnsatisfiable == corev1.DoNotSchedule {
			r.hard = append(r.hard, c)
		} else {
			r.soft = append(r.soft, c)
		}
	}
	return r, nil
}

func (p *Plugin) defaultSelector(pod *corev1.Pod) labels.Selector {
	if p.Workloads == nil {
		return nil
	}
	return p.Workloads.SelectorFor(pod)
}

func parse(in *corev1.TopologySpreadConstraint, pod *corev1.Pod) (constraint, error) {
	sel, err := metav1.LabelSelectorAsSelector(in.LabelSelector)
	if err != nil {
		return constraint{}, err
	}
	for _, k := range in.MatchLabelKeys {
		if v, ok := pod.Labels[k]; ok {
			sel = labels.SelectorFromValidatedSet(labels.Set{k: v}).Add(requirements(sel)...)
		}
	}
	c := constraint{key: in.TopologyKey, maxSkew: int(in.MaxSkew), minDomains: 1, selector: sel, honorAffinity: true}
	if in.MinDomains != nil {
		c.minDomains = int(*in.MinDomains)
	}
	if in.NodeAffinityPolicy != nil {
		c.honorAffinity = *in.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor
	}
	if in.NodeTaintsPolicy != nil {
		c.honorTaints = *in.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	}
	return c, nil
}

func requirements(s labels.Selector) labels.Requirements {
	r, _ := s.Requirements()
	return r
}

// counts tells whether pods on node count for c.
func (r *rules) counts(c *constraint, node *framework.NodeInfo) bool {
	if c.honorAffinity {
		if match, err := r.affinity.Match(node.Node); err != nil || !match {
			return false
		}
	}
	return !c.honorTaints || framework.Untolerated(r.pod.Pod, node.Node) == nil
}

// self is 1 if the pod itself matches c.
func (r *rules) self(c *constraint) int {
	if c.selector.Matches(labels.Set(r.pod.Pod.Labels)) {
		return 1
	}
	return 0
}

// matching counts the pods on node that c is about.
func (r *rules) matching(c *constraint, node *framework.NodeInfo) int {
	return framework.CountMatching(node.Pods, r.namespace, c.selector)
}

// hasKeys tells whether the node is in a domain of each constraint.
func hasKeys(node *framework.NodeInfo, list []constraint) bool {
	for i := range list {
		if _, ok := node.Node.Labels[list[i].key]; !ok {
			return false
		}
	}
	return true
}

// weight makes a pod in a key with few domains count more.
func weight(domains int) float64 { return math.Log(float64(domains + 2)) }

// part is what one constraint adds to a node's score: less is better.
func part(count int, c *constraint, weight float64) float64 {
	return float64(count)*weight + float64(c.maxSkew-1)
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
