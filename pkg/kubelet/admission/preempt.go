package admission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// The reason and message of a pod that lost its place, in upstream's words.
const (
	reasonPreempting  = "Preempting"
	messagePreempting = "Preempted in order to admit critical pod"
)

// victim is a pod that has just lost its place; lacked is the resource that the node had too little of.
type victim struct {
	uid    types.UID
	lacked corev1.ResourceName
}

// preempt gives a place to a critical pod that lacks resources: lower pods lose theirs, and it waits for their end. It
// returns the pods that lost their place, or why there is no way. Pods that are already leaving free their room too.
//
// https://kubernetes.io/docs/tasks/administer-cluster/guaranteed-scheduling-critical-addon-pods/
func (a *Admitter) preempt(p *entry) ([]victim, *Rejection) {
	var staying, all []claim
	var candidates []*entry
	leaving := map[types.UID]bool{}
	for uid, o := range a.pods {
		switch {
		case o == p || o.verdict != Admitted && o.verdict != Preempted:
			continue
		case o.verdict == Preempted:
			leaving[uid] = true
		default:
			staying = append(staying, o.claim)
			if mayPreempt(p, o) {
				candidates = append(candidates, o)
			}
		}
		all = append(all, o.claim)
	}
	if why := unfit(p.pod, a.cfg.Node(), p.claim, all); why != nil {
		return nil, why // nobody's leaving helps
	}
	lacks := a.lacks(p.claim, staying)
	chosen, ok := a.choose(lacks, candidates)
	if !ok {
		return nil, hopeless(lacks)
	}
	var victims []victim
	for _, o := range chosen {
		o.verdict, o.why = Preempted, &Rejection{Reason: reasonPreempting, Message: messagePreempting}
		leaving[o.pod.UID] = true
		victims = append(victims, victim{o.pod.UID, lacks[0].name})
	}
	if len(a.lacks(p.claim, all)) > 0 {
		p.after = leaving
	}
	return victims, nil
}

func hopeless(lacks []lack) *Rejection {
	var missing strings.Builder
	for _, l := range lacks {
		fmt.Fprintf(&missing, "(res: %v, q: %d), ", l.name, l.missing())
	}
	return &Rejection{Reason: "UnexpectedAdmissionError",
		Message: fmt.Sprintf("Unexpected error while attempting to recover from "+
			"admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [%s]", missing.String())}
}

// mayPreempt reports whether critical pod p may take the place of o.
func mayPreempt(p, o *entry) bool {
	if !runtime.Critical(o.pod) {
		return true
	}
	mine, its := p.pod.Spec.Priority, o.pod.Spec.Priority
	return mine != nil && its != nil && *mine > *its
}

// choose picks the pods whose leaving makes up for what is missing: as few Guaranteed pods as are needed if all others
// leave, then as few Burstable ones as are needed with these, then BestEffort ones. It returns false if all of them
// together are not enough.
func (a *Admitter) choose(lacks []lack, candidates []*entry) ([]*entry, bool) {
	need := map[corev1.ResourceName]int64{}
	for _, l := range lacks {
		need[l.name] = l.missing()
	}
	classes := []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort}
	of := map[corev1.PodQOSClass][]*entry{}
	for _, c := range candidates {
		class := runtime.QOSClass(c.pod)
		of[class] = append(of[class], c)
	}
	var chosen []*entry
	for i, class := range classes {
		rest := less(need, chosen)
		for _, lower := range classes[i+1:] {
			rest = less(rest, of[lower])
		}
		some, ok := fewest(rest, of[class])
		if !ok {
			return nil, false
		}
		chosen = append(chosen, some...)
	}
	return chosen, true
}

// fewest picks, one after the other, the pod whose leaving leaves the least missing; among equals the one that has the
// least, then the youngest. At the end it spares those that later picks made superfluous. It returns false if all are
// not enough.
func fewest(need map[corev1.ResourceName]int64, from []*entry) ([]*entry, bool) {
	from, whole := slices.Clone(from), need
	var out []*entry
	for len(need) > 0 {
		if len(from) == 0 {
			return nil, false
		}
		best := slices.MinFunc(from, func(x, y *entry) int {
			return cmp.Or(cmp.Compare(distance(need, x), distance(need, y)),
				cmp.Compare(x.claim.amounts[corev1.ResourceMemory], y.claim.amounts[corev1.ResourceMemory]),
				cmp.Compare(x.claim.amounts[corev1.ResourceCPU], y.claim.amounts[corev1.ResourceCPU]), -byAge(x, y))
		})
		from = slices.DeleteFunc(from, func(x *entry) bool { return x == best })
		out, need = append(out, best), less(need, []*entry{best})
	}
	for i := 0; i < len(out); {
		if without := slices.Concat(out[:i], out[i+1:]); len(less(whole, without)) == 0 {
			out = without
		} else {
			i++
		}
	}
	return out, true
}

// distance returns how far from enough the pod's leaving is: the sum of the squares of what would still be missing, as
// fractions of the need, so that resources of different units compare.
func distance(need map[corev1.ResourceName]int64, p *entry) float64 {
	sum := 0.0
	for name, n := range need {
		part := float64(max(n-p.claim.amounts[name], 0)) / float64(n)
		sum += part * part
	}
	return sum
}

// less returns what is still missing after those pods have left.
func less(need map[corev1.ResourceName]int64, gone []*entry) map[corev1.ResourceName]int64 {
	out := map[corev1.ResourceName]int64{}
	for name, n := range need {
		for _, p := range gone {
			n -= p.claim.amounts[name]
		}
		if n > 0 {
			out[name] = n
		}
	}
	return out
}
