package daemonset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"bonsai/pkg/controller"
)

// status counts nodes, not pods: a node with two pods during a surge counts by the one that byNode puts first. The
// duration, if positive, is when the next pod will have been ready for long enough; no watch reports that moment.
//
// acted reports whether this generation of the spec has been acted on. While pods are still expected the old
// observedGeneration stays: a client that waits for it would otherwise read the counts of the spec before.
func (s *state) status(acted bool) (appsv1.DaemonSetStatus, time.Duration) {
	st := appsv1.DaemonSetStatus{
		ObservedGeneration: s.ds.Status.ObservedGeneration, CollisionCount: s.ds.Status.CollisionCount,
		Conditions: s.ds.Status.Conditions,
	}
	if acted {
		st.ObservedGeneration = s.ds.Generation
	}
	var wait time.Duration
	minReady := time.Duration(s.ds.Spec.MinReadySeconds) * time.Second
	for _, node := range s.nodes {
		pods := s.pods[node.Name]
		// A pod on a node that is no longer for new ones is misscheduled, even where it may stay.
		if !s.place(node).run {
			if len(pods) > 0 {
				st.NumberMisscheduled++
			}
			continue
		}
		st.DesiredNumberScheduled++
		if len(pods) == 0 {
			continue
		}
		st.CurrentNumberScheduled++
		for _, p := range pods { // also the new one beside an old one, which goes when the new one is available
			if _, missing := controller.PodAvailable(p, minReady, s.now); missing > 0 && (wait == 0 || missing < wait) {
				wait = missing
			}
		}
		p := pods[0]
		if revisionOf(p) == s.hash {
			st.UpdatedNumberScheduled++
		}
		if !controller.PodReady(p) {
			continue
		}
		st.NumberReady++
		if s.available(p) {
			st.NumberAvailable++
		}
	}
	st.NumberUnavailable = st.DesiredNumberScheduled - st.NumberAvailable
	return st, wait
}
