package deployment

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
)

// Reasons of the conditions, as Kubernetes documents them.
const (
	replicaSetUpdated         = "ReplicaSetUpdated"
	replicaSetCreateError     = "ReplicaSetCreateError"
	newReplicaSetCreated      = "NewReplicaSetCreated"
	foundNewReplicaSet        = "FoundNewReplicaSet"
	newReplicaSetAvailable    = "NewReplicaSetAvailable"
	deadlineExceeded          = "ProgressDeadlineExceeded"
	paused                    = "DeploymentPaused"
	resumed                   = "DeploymentResumed"
	minimumAvailable          = "MinimumReplicasAvailable"
	minimumUnavailable        = "MinimumReplicasUnavailable"
	minimumAvailableMessage   = "Deployment has minimum availability."
	minimumUnavailableMessage = "Deployment does not have minimum availability."
)

// hasDeadline reports whether progress is to be judged; the largest int32 means never.
//
// Without a deadline there is no Progressing condition, and kubectl rollout status never gives up.
func hasDeadline(d *appsv1.Deployment) bool {
	return d.Spec.ProgressDeadlineSeconds != nil && *d.Spec.ProgressDeadlineSeconds != 1<<31-1
}

func condition(s appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// setCondition replaces the condition of c's type, unless status and reason are unchanged. The transition time moves
// only with the status.
//
// An unchanged reason keeps lastUpdateTime too, which the deadline counts from: a round without progress does not
// extend it.
func setCondition(s *appsv1.DeploymentStatus, c appsv1.DeploymentCondition) {
	old := condition(*s, c.Type)
	if old != nil && old.Status == c.Status && old.Reason == c.Reason {
		return
	}
	if old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	removeCondition(s, c.Type)
	s.Conditions = append(s.Conditions, c)
}

func removeCondition(s *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) {
	s.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c appsv1.DeploymentCondition) bool {
		return c.Type == t
	})
}

func newCondition(t appsv1.DeploymentConditionType, st corev1.ConditionStatus, reason, msg string,
	now time.Time) appsv1.DeploymentCondition {
	at := metav1.NewTime(now)
	return appsv1.DeploymentCondition{Type: t, Status: st, Reason: reason, Message: msg, LastUpdateTime: at,
		LastTransitionTime: at}
}

func (r *rollout) progressing(st corev1.ConditionStatus, reason, msg string) appsv1.DeploymentCondition {
	return newCondition(appsv1.DeploymentProgressing, st, reason, msg, r.now)
}

// notePause sets the Progressing condition to Unknown while the rollout is paused, and again when it is resumed. Time
// in a pause does not count against the deadline: a resumed rollout has all of it. A deadline that was already missed
// stays.
func (r *rollout) notePause(ctx context.Context) error {
	if !hasDeadline(r.d) {
		return nil
	}
	c := condition(r.d.Status, appsv1.DeploymentProgressing)
	if c != nil && c.Reason == deadlineExceeded {
		return nil
	}
	noted := c != nil && c.Reason == paused
	switch {
	case r.d.Spec.Paused && !noted:
		setCondition(&r.d.Status, r.progressing(corev1.ConditionUnknown, paused, "Deployment is paused"))
	case !r.d.Spec.Paused && noted:
		setCondition(&r.d.Status, r.progressing(corev1.ConditionUnknown, resumed, "Deployment is resumed"))
	default:
		return nil
	}
	return r.saveStatus(ctx)
}

// report stores the status if it changed. With judge it also judges the progress of the rollout, and asks to come back
// when the deadline would be missed.
//
// judge is false for scaling, pauses and deletion, which are no progress of a rollout.
func (r *rollout) report(ctx context.Context, judge bool) (controller.Result, error) {
	if !judge && r.next == nil {
		for _, rs := range r.all {
			if sameTemplate(&rs.Spec.Template, &r.d.Spec.Template) {
				r.next = rs
				break
			}
		}
	}
	st := countStatus(r.d, r.all, r.next, r.now)
	if judge {
		judgeProgress(r.d, &st, r.all, r.next, r.now)
	}
	if !equality.Semantic.DeepEqual(r.d.Status, st) {
		r.d.Status = st
		if err := r.saveStatus(ctx); err != nil {
			return controller.Result{}, err
		}
	}
	if !judge {
		return controller.Result{}, nil
	}
	return controller.Result{RequeueAfter: untilDeadline(r.d, st, r.now)}, nil
}

// countStatus adds up the ReplicaSets' statuses and sets the condition Available.
//
// observedGeneration is the generation that this round read; a client that waits for it sees counts that are at least
// as new.
func countStatus(d *appsv1.Deployment, all []*appsv1.ReplicaSet, next *appsv1.ReplicaSet,
	now time.Time) appsv1.DeploymentStatus {
	ready := sum(all, available)
	st := appsv1.DeploymentStatus{
		ObservedGeneration:  d.Generation,
		Replicas:            sum(all, func(rs *appsv1.ReplicaSet) int32 { return rs.Status.Replicas }),
		ReadyReplicas:       sum(all, func(rs *appsv1.ReplicaSet) int32 { return rs.Status.ReadyReplicas }),
		AvailableReplicas:   ready,
		UnavailableReplicas: max(sum(all, replicas)-ready, 0),
		CollisionCount:      d.Status.CollisionCount,
		TerminatingReplicas: terminating(all),
		Conditions:          d.Status.Conditions,
	}
	if next != nil {
		st.UpdatedReplicas = next.Status.Replicas
	}
	_, maxUnavailable := limits(d)
	if ready >= *d.Spec.Replicas-maxUnavailable {
		setCondition(&st, newCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, minimumAvailable,
			minimumAvailableMessage, now))
	} else {
		setCondition(&st, newCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, minimumUnavailable,
			minimumUnavailableMessage, now))
	}
	return st
}

// terminating is nil as long as some ReplicaSet has not counted its terminating pods.
func terminating(all []*appsv1.ReplicaSet) *int32 {
	var n int32
	for _, rs := range all {
		if rs.Status.TerminatingReplicas == nil {
			return nil
		}
		n += *rs.Status.TerminatingReplicas
	}
	return &n
}

// complete reports whether a status says that all replicas are of the new template and available.
//
// s may be a status that is not stored yet: a rollout that completes in this round is reported as complete at once.
func complete(d *appsv1.Deployment, s appsv1.DeploymentStatus) bool {
	n := *d.Spec.Replicas
	return s.UpdatedReplicas == n && s.Replicas == n && s.AvailableReplicas == n && s.ObservedGeneration >= d.Generation
}

// progressed reports whether anything moved in the right direction since the status that is stored.
//
// A rollout that goes backward, as when pods become unready, has not progressed, and its deadline runs on.
func progressed(was, is appsv1.DeploymentStatus) bool {
	return is.UpdatedReplicas > was.UpdatedReplicas ||
		is.Replicas-is.UpdatedReplicas < was.Replicas-was.UpdatedReplicas ||
		is.ReadyReplicas > was.ReadyReplicas || is.AvailableReplicas > was.AvailableReplicas
}

// judgeProgress sets the conditions Progressing and ReplicaFailure
// (https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#deployment-status). The first case that fits
// decides: no deadline; already complete and unchanged; complete now; progress since the stored status; deadline
// missed. Otherwise the condition stays. ReplicaFailure follows the ReplicaSets and goes with its cause.
func judgeProgress(d *appsv1.Deployment, st *appsv1.DeploymentStatus, all []*appsv1.ReplicaSet, next *appsv1.ReplicaSet,
	now time.Time) {
	current := condition(d.Status, appsv1.DeploymentProgressing)
	settled := st.Replicas == st.UpdatedReplicas && current != nil && current.Reason == newReplicaSetAvailable
	what := fmt.Sprintf("Deployment %q", d.Name)
	if next != nil {
		what = fmt.Sprintf("ReplicaSet %q", next.Name)
	}
	set := func(s corev1.ConditionStatus, reason, did string) {
		setCondition(st, newCondition(appsv1.DeploymentProgressing, s, reason, what+did, now))
	}
	switch {
	case !hasDeadline(d):
		removeCondition(st, appsv1.DeploymentProgressing)
	case settled:
	case complete(d, *st):
		set(corev1.ConditionTrue, newReplicaSetAvailable, " has successfully progressed.")
	case progressed(d.Status, *st):
		c := newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, replicaSetUpdated,
			what+" is progressing.", now)
		if current != nil && current.Status == corev1.ConditionTrue {
			c.LastTransitionTime = current.LastTransitionTime
		}
		// Removed first, because setCondition keeps a condition whose reason is the same: progress has to move
		// lastUpdateTime.
		removeCondition(st, appsv1.DeploymentProgressing)
		setCondition(st, c)
	case timedOut(d, current, now):
		set(corev1.ConditionFalse, deadlineExceeded, " has timed out progressing.")
	}
	if f := failure(all, next); f != nil {
		setCondition(st, *f)
	} else {
		removeCondition(st, appsv1.DeploymentReplicaFailure)
	}
}

// failure repeats the ReplicaFailure of the new ReplicaSet, or else of any old one.
//
// The new one comes first: its failure is what holds the rollout up.
func failure(all []*appsv1.ReplicaSet, next *appsv1.ReplicaSet) *appsv1.DeploymentCondition {
	for _, rs := range append([]*appsv1.ReplicaSet{next}, all...) {
		if rs == nil {
			continue
		}
		for _, c := range rs.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				return &appsv1.DeploymentCondition{
					Type: appsv1.DeploymentReplicaFailure, Status: c.Status, Reason: c.Reason, Message: c.Message,
					LastTransitionTime: c.LastTransitionTime, LastUpdateTime: c.LastTransitionTime,
				}
			}
		}
	}
	return nil
}

func deadline(d *appsv1.Deployment, c *appsv1.DeploymentCondition) time.Time {
	return c.LastUpdateTime.Add(time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second)
}

// timedOut reports whether the last progress is longer ago than the deadline allows.
func timedOut(d *appsv1.Deployment, c *appsv1.DeploymentCondition, now time.Time) bool {
	if c == nil || c.Reason == newReplicaSetAvailable {
		return false
	}
	return c.Reason == deadlineExceeded || now.After(deadline(d, c))
}

// untilDeadline returns when to look again whether the deadline is missed; 0 if that is settled.
//
// One second more than is left, because times in objects are cut to whole seconds.
func untilDeadline(d *appsv1.Deployment, st appsv1.DeploymentStatus, now time.Time) time.Duration {
	c := condition(st, appsv1.DeploymentProgressing)
	if !hasDeadline(d) || c == nil || c.Reason == deadlineExceeded || c.Reason == newReplicaSetAvailable ||
		complete(d, st) {
		return 0
	}
	return max(deadline(d, c).Sub(now)+time.Second, time.Second)
}
