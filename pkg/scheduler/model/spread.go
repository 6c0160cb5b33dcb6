package model

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// SpreadConstraint is a topology spread constraint, parsed.
type SpreadConstraint struct {
	TopologyKey string
	MaxSkew     int
	MinDomains  int
	// Selector has the values that the pod's labels have for matchLabelKeys.
	Selector labels.Selector
	// Hard refuses nodes; else the constraint only rates them.
	Hard bool
	// HonorAffinity and HonorTaints leave nodes out of the count that the pod cannot use.
	HonorAffinity, HonorTaints bool
	// ID is equal for constraints that are alike in all this.
	ID string
}

// spreadConstraints parses the pod's constraints.
func spreadConstraints(pod *corev1.Pod) ([]SpreadConstraint, error) {
	var out []SpreadConstraint
	for i := range pod.Spec.TopologySpreadConstraints {
		in := &pod.Spec.TopologySpreadConstraints[i]
		sel, err := metav1.LabelSelectorAsSelector(in.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("parsing a topology spread constraint of pod %s: %w", podKey(pod), err)
		}
		for _, k := range in.MatchLabelKeys {
			if v, ok := pod.Labels[k]; ok {
				more, _ := sel.Requirements()
				sel = labels.SelectorFromValidatedSet(labels.Set{k: v}).Add(more...)
			}
		}
		out = append(out, NewSpreadConstraint(in, sel))
	}
	return out, nil
}

// NewSpreadConstraint parses a constraint on the pods that sel selects, whatever its own selector.
func NewSpreadConstraint(in *corev1.TopologySpreadConstraint, sel labels.Selector) SpreadConstraint {
	c := SpreadConstraint{TopologyKey: in.TopologyKey, MaxSkew: int(in.MaxSkew), MinDomains: 1, Selector: sel,
		Hard: in.WhenUnsatisfiable == corev1.DoNotSchedule, HonorAffinity: true}
	if in.MinDomains != nil {
		c.MinDomains = int(*in.MinDomains)
	}
	if in.NodeAffinityPolicy != nil {
		c.HonorAffinity = *in.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor
	}
	if in.NodeTaintsPolicy != nil {
		c.HonorTaints = *in.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	}
	var k Key
	k.Str(c.TopologyKey)
	k.Num(int64(c.MaxSkew))
	k.Num(int64(c.MinDomains))
	k.Selector(sel)
	k.Bool(c.Hard)
	k.Bool(c.HonorAffinity)
	k.Bool(c.HonorTaints)
	c.ID = k.String()
	return c
}
