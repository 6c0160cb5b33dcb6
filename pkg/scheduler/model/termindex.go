package model

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// termIndex has the affinity terms of all pods on the nodes of a Snapshot, alike ones once, to find those that are
// about a pod. A term that no pod has any more is kept for a while: it does no harm, and it often comes back.
type termIndex struct {
	terms map[string]*countedTerm // by AffinityTerm.ID
	index LabelIndex[*countedTerm]
	dead  int // terms that no pod has
}

type countedTerm struct {
	AffinityTerm
	pods int
}

// keepDead is how many terms without pods are kept.
const keepDead = 1024

// count counts the pod's terms in (1) or out (-1).
func (x *termIndex) count(p *PodInfo, by int) {
	for t := range p.Terms.All {
		c := x.terms[t.ID]
		if c == nil {
			c = &countedTerm{AffinityTerm: *t}
			if x.terms == nil {
				x.terms = map[string]*countedTerm{}
			}
			x.terms[t.ID] = c
			x.index.Add(t.Selector, c)
			x.dead++
		}
		if c.pods == 0 {
			x.dead--
		}
		if c.pods += by; c.pods == 0 {
			x.dead++
		}
	}
	if x.dead > keepDead {
		x.sweep()
	}
}

func (x *termIndex) sweep() {
	for id, c := range x.terms {
		if c.pods == 0 {
			delete(x.terms, id)
			x.index.Remove(c.Selector, c)
		}
	}
	x.dead = 0
}

// TermsAbout calls yield with the ID of every term of pods on nodes that is about pod, which is in a namespace with
// these labels; and perhaps with some that no pod has any more.
func (s *Snapshot) TermsAbout(pod *corev1.Pod, namespaceLabels labels.Set, yield func(id string)) {
	s.terms.index.Candidates(pod.Labels, func(c *countedTerm) {
		if c.Matches(pod, namespaceLabels) {
			yield(c.ID)
		}
	})
}
