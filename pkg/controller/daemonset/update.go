package daemonset

import (
	corev1 "k8s.io/api/core/v1"
)

// update replaces pods of old revisions, as many at a time as the strategy allows. It looks only at nodes that have
// pods: spread sees to the others. An old pod also goes from a node that no longer takes new ones.
func (s *state) update() plan {
	n := s.desired()
	surge, unavailable := s.surge(n), s.unavailable(n)
	if surge > 0 {
		return s.updateSurging(surge)
	}
	return s.updateInPlace(max(unavailable, 1))
}

// pair finds the one pod of the current and the one of an old revision on a node; ok is false if there are more of
// either.
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

// updateInPlace deletes old pods, so that spread makes new ones once they are gone. Old pods that are not available go
// at once, for that costs nothing; of the others as many as leaves no more than most nodes without an available pod.
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

// updateSurging makes new pods beside the old ones, on most nodes at a time, and deletes an old pod once the new one is
// available. Where the old pod is not available, a new one is made at once.
func (s *state) updateSurging(most int) plan {
	var out plan
	var candidates []string
	surging := 0
	for _, node := range s.nodes {
		run := s.place(node).run
		fresh, old, ok := s.pair(s.pods[node.Name])
		switch {
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
