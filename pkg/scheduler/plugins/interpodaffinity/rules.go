package interpodaffinity

import (
	"math"

	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// rules are the pod's terms and what is needed to match them and others' terms.
type rules struct {
	pod        *model.PodInfo
	terms      *model.PodTerms
	nsLabels   labels.Set
	namespaces framework.Namespaces
	hardWeight int32
	// deaf: what others want does not count in the pod's score.
	deaf bool
	// matched are the IDs of the only terms of other pods that are about the pod; nil: each term is asked.
	matched map[string]bool
}

func (p *Plugin) rules(pod *model.PodInfo) *rules {
	r := &rules{pod: pod, terms: pod.Terms, namespaces: p.Namespaces, hardWeight: p.HardWeight}
	if r.terms == nil {
		r.terms = &model.PodTerms{}
	}
	r.deaf = p.IgnorePreferred && len(r.terms.PreferredAffinity) == 0 && len(r.terms.PreferredAntiAffinity) == 0
	r.nsLabels = p.Namespaces.NamespaceLabels(pod.Pod.Namespace)
	return r
}

// about reports whether the pod's own term is about other.
func (r *rules) about(t *model.AffinityTerm, other *model.PodInfo) bool {
	return matches(r.namespaces, t, other)
}

// matches reports whether the term is about the pod. Most terms name the namespace: then its labels are not asked for.
func matches(namespaces framework.Namespaces, t *model.AffinityTerm, pod *model.PodInfo) bool {
	if t.Namespaces[pod.Pod.Namespace] {
		return t.Selector.Matches(labels.Set(pod.Pod.Labels))
	}
	return t.Matches(pod.Pod, namespaces.NamespaceLabels(pod.Pod.Namespace))
}

// meant reports whether another pod's term is about the pod.
func (r *rules) meant(t *model.AffinityTerm) bool {
	if r.matched != nil {
		return r.matched[t.ID]
	}
	return t.Matches(r.pod.Pod, r.nsLabels)
}

// aboutAll reports whether all required affinity terms are about other.
func (r *rules) aboutAll(other *model.PodInfo) bool {
	for i := range r.terms.Affinity {
		if !r.about(&r.terms.Affinity[i], other) {
			return false
		}
	}
	return len(r.terms.Affinity) > 0
}

// kinds of counts.
type kind int

const (
	affinity kind = iota // pods that all required affinity terms of the pod are about
	anti                 // pods that a required anti-affinity term of the pod is about
	existing             // pods with a required anti-affinity term about the pod
	score                // weights of preferred terms of both sides
)

// facts calls yield for everything that other, running somewhere, adds: to which kind of count, for which topology key,
// and how much. Only the term's key matters, the domain is that of other's node.
func (r *rules) facts(other *model.PodInfo, yield func(k kind, key string, by int64)) {
	t := r.terms
	if r.aboutAll(other) {
		for i := range t.Affinity {
			yield(affinity, t.Affinity[i].TopologyKey, 1)
		}
	}
	for i := range t.AntiAffinity {
		if r.about(&t.AntiAffinity[i], other) {
			yield(anti, t.AntiAffinity[i].TopologyKey, 1)
		}
	}
	for i := range t.PreferredAffinity {
		if r.about(&t.PreferredAffinity[i], other) {
			yield(score, t.PreferredAffinity[i].TopologyKey, int64(t.PreferredAffinity[i].Weight))
		}
	}
	for i := range t.PreferredAntiAffinity {
		if r.about(&t.PreferredAntiAffinity[i], other) {
			yield(score, t.PreferredAntiAffinity[i].TopologyKey, -int64(t.PreferredAntiAffinity[i].Weight))
		}
	}
	r.othersFacts(other, yield)
}

// othersFacts are those that come from other's terms.
func (r *rules) othersFacts(other *model.PodInfo, yield func(k kind, key string, by int64)) {
	o := other.Terms
	if o == nil {
		return
	}
	for i := range o.AntiAffinity {
		if r.meant(&o.AntiAffinity[i]) {
			yield(existing, o.AntiAffinity[i].TopologyKey, 1)
		}
	}
	if r.deaf {
		return
	}
	if r.hardWeight > 0 {
		for i := range o.Affinity {
			if r.meant(&o.Affinity[i]) {
				yield(score, o.Affinity[i].TopologyKey, int64(r.hardWeight))
			}
		}
	}
	for i := range o.PreferredAffinity {
		if r.meant(&o.PreferredAffinity[i]) {
			yield(score, o.PreferredAffinity[i].TopologyKey, int64(o.PreferredAffinity[i].Weight))
		}
	}
	for i := range o.PreferredAntiAffinity {
		if r.meant(&o.PreferredAntiAffinity[i]) {
			yield(score, o.PreferredAntiAffinity[i].TopologyKey, -int64(o.PreferredAntiAffinity[i].Weight))
		}
	}
}

// normalize spreads the scores over 0 to MaxNodeScore; all 0 if they are alike.
func normalize(scores []int64) {
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	for _, s := range scores {
		lo, hi = min(lo, s), max(hi, s)
	}
	for i, s := range scores {
		if hi == lo {
			scores[i] = 0
			continue
		}
		scores[i] = int64(framework.MaxNodeScore * (float64(s-lo) / float64(hi-lo)))
	}
}
