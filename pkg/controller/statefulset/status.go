package statefulset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/controller"
)

// status counts the pods. Terminating pods are still replicas, but no longer of any revision. The duration, if
// positive, is when the next pod will have been ready for long enough; no watch reports that moment.
//
// acted reports whether this generation of the spec has been acted on. While pods are still expected the old
// observedGeneration stays: a client that waits for it would otherwise read the counts of the spec before.
func (s *state) status(acted bool) (appsv1.StatefulSetStatus, time.Duration) {
	st := appsv1.StatefulSetStatus{
		ObservedGeneration: s.set.Status.ObservedGeneration, Conditions: s.set.Status.Conditions,
		CurrentRevision: s.current.name, UpdateRevision: s.update.name,
		CollisionCount: new(count(s.set.Status.CollisionCount)),
	}
	if acted {
		st.ObservedGeneration = s.set.Generation
	}
	var wait time.Duration
	for _, p := range s.pods {
		st.Replicas++
		if p.DeletionTimestamp == nil {
			if revisionOf(p) == s.current.name {
				st.CurrentReplicas++
			}
			if revisionOf(p) == s.update.name {
				st.UpdatedReplicas++
			}
		}
		if p.Status.Phase != corev1.PodRunning || !controller.PodReady(p) {
			continue
		}
		st.ReadyReplicas++
		ok, missing := controller.PodAvailable(p, time.Duration(s.set.Spec.MinReadySeconds)*time.Second, s.now)
		if ok {
			st.AvailableReplicas++
		} else if missing > 0 && (wait == 0 || missing < wait) {
			wait = missing
		}
	}
	s.complete(&st)
	return st, wait
}

// complete makes the update revision the current one when every pod is at it and ready. With a partition that never
// happens, so both revisions stay in the status until the partition is lowered.
func (s *state) complete(st *appsv1.StatefulSetStatus) {
	n := count(s.set.Spec.Replicas)
	if st.UpdatedReplicas == n && st.ReadyReplicas == n && st.Replicas == n {
		st.CurrentRevision, st.CurrentReplicas = st.UpdateRevision, st.UpdatedReplicas
	}
}
