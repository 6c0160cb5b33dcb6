package daemonset

import (
	corev1 "k8s.io/api/core/v1"
)

// update replaces pods of old revisions, as many at a time as the strategy allows. It looks only at nodes that have
// pods, because spread sees to the others first. An old pod also goes from a node that no longer takes new ones.
//
// The API server refuses a strategy with both bounds 0. A percentage of few nodes cannot become 0 either, as it rounds
// up; the 1 below covers a set without nodes and an unset strategy.
func (s *state) update() plan {
	n := s.desired()
	surge, unavailable := s.surge(n), s.unavailable(n)
	if surge > 0 {
		return s.updateSurging(surge)
	}
	return s.updateInPlace(max(unavailable, 1))
}

// pair finds the one pod of the current revision and the one of an old revision on a node; either may be nil. ok is
// false if there are several of one sort: spread tidies such a node first, and the update counts it as under way.
func (s *state) pair(pods []*corev1.Pod) (fresh, old *corev1.Pod, ok bool) {
	for _, p := range leaving(pods) {
		at := &old
		if revisionOf(p) == s.hash {
			at = &fresh
		}
		if *at != nil {
			return nil, nil, false
		}
		*at = p
	}
	return fresh, old, true
}

// updateInPlace deletes old pods; spread makes the new ones when they are gone. Old pods that are not available go at
// once, because that takes nothing out of service. Of the available ones only as many go as keep the number of nodes
// without an available pod within most. An update to a broken template therefore stops after most nodes.
func (s *state) updateInPlace(most int) plan {
	var out plan
	var candidates []*corev1.Pod
	missing := 0
	for _, node := range s.nodes {
		if !s.place(node).run && len(s.pods[node.Name]) == 0 {
			continue
		}
		fresh, old, ok := s.pair(s.pods[node.Name])
		switch {
		// Between two pods: none, or one of each, or too many. The node counts as unavailable.
		case !ok, (fresh == nil) == (old == nil):
			missing++
		case fresh != nil:
			if !s.available(fresh) {
				missing++
			}
		case !s.available(old):
			missing++
			out.delete = append(out.delete, old)
		default:
			candidates = append(candidates, old)
		}
	}
	out.delete = append(out.delete, candidates[:min(max(most-missing, 0), len(candidates))]...)
	return out
}

// updateSurging makes new pods beside the old ones, on no more than most nodes at a time, and deletes an old pod once
// the new one is available. Where the old pod is not available a new one is made at once, outside of the bound: the
// node has nothing to lose.
func (s *state) updateSurging(most int) plan {
	var out plan
	var candidates []string
	surging := 0
	for _, node := range s.nodes {
		run := s.place(node).run
		fresh, old, ok := s.pair(s.pods[node.Name])
		switch {
		// Neither created nor deleted for, but in the bound: somebody's extra pod must not let the update run ahead.
		case !ok && run:
			surging++
		case old == nil:
		case !run:
			out.delete = append(out.delete, old)
		case fresh == nil && !s.available(old):
			out.create = append(out.create, node.Name)
		case fresh == nil:
			candidates = append(candidates, node.Name)
		case s.available(fresh):
			out.delete = append(out.delete, old)
		default:
			surging++
		}
	}
	out.create = append(out.create, candidates[:min(max(most-surging, 0), len(candidates))]...)
	return out
}
