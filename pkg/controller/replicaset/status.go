package replicaset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/controller"
)

// statusOf counts the pods. The duration, if positive, is when the next pod will have been ready for long enough.
func statusOf(s *set, active, terminating []*corev1.Pod, manageErr error, now time.Time) (appsv1.ReplicaSetStatus,
	time.Duration) {
	st := appsv1.ReplicaSetStatus{
		Replicas: int32(len(active)), ObservedGeneration: s.obj.GetGeneration(),
		TerminatingReplicas: new(int32(len(terminating))), Conditions: s.status.Conditions,
	}
	var template labels.Selector = labels.Everything()
	if s.template != nil {
		template = labels.SelectorFromSet(s.template.Labels)
	}
	var wait time.Duration
	for _, p := range active {
		if template.Matches(labels.Set(p.Labels)) {
			st.FullyLabeledReplicas++
		}
		if !controller.PodReady(p) {
			continue
		}
		st.ReadyReplicas++
		ok, missing := controller.PodAvailable(p, seconds(s.minReady), now)
		if ok {
			st.AvailableReplicas++
		} else if missing > 0 && (wait == 0 || missing < wait) {
			wait = missing
		}
	}
	st.Conditions = failureCondition(st.Conditions, s.replicas-len(active), manageErr, now)
	return st, wait
}

// failureCondition sets ReplicaFailure while creating or deleting fails, and takes it away after.
func failureCondition(old []appsv1.ReplicaSetCondition, diff int, err error,
	now time.Time) []appsv1.ReplicaSetCondition {
	var out []appsv1.ReplicaSetCondition
	var had bool
	for _, c := range old {
		if c.Type == appsv1.ReplicaSetReplicaFailure {
			had = true
			if err == nil {
				continue
			}
		}
		out = append(out, c)
	}
	if err == nil || had {
		return out
	}
	reason := "FailedCreate"
	if diff < 0 {
		reason = "FailedDelete"
	}
	return append(out, appsv1.ReplicaSetCondition{
		Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: err.Error(),
		LastTransitionTime: metav1.NewTime(now),
	})
}

// sameStatus reports whether nothing a reader could see changed.
func sameStatus(a, b appsv1.ReplicaSetStatus) bool {
	return a.Replicas == b.Replicas && a.FullyLabeledReplicas == b.FullyLabeledReplicas &&
		a.ReadyReplicas == b.ReadyReplicas &&
		a.AvailableReplicas == b.AvailableReplicas && a.ObservedGeneration == b.ObservedGeneration &&
		equality.Semantic.DeepEqual(a.TerminatingReplicas, b.TerminatingReplicas) &&
		equality.Semantic.DeepEqual(a.Conditions, b.Conditions)
}
