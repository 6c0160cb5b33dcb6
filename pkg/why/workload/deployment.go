package workload

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/why"
)

// revision is the annotation by which a Deployment counts its ReplicaSets.
const revision = "deployment.kubernetes.io/revision"

// Deployment explains a Deployment: a rollout that does not finish, or replicas that are missing.
func Deployment(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	d, known := why.Get[appsv1.Deployment](ctx, c.World, o.Namespace, o.Name)
	if d == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf("apps", "Deployment", d)
	if d.DeletionTimestamp != nil {
		return going(ctx, c, self, d)
	}
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	s := &d.Status
	a := why.Answer{Subject: self}
	done := s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want &&
		s.Replicas == want
	if done && want == 0 {
		return scaledToZero(self, d), nil
	}
	sets, newest := setsOf(ctx, c, d)
	var restless []why.Cause
	var err error
	if newest != nil {
		set, pods := why.ObjectOf("apps", "ReplicaSet", newest), podsOf(ctx, c, d.Namespace, newest.UID)
		if restless, err = unstable(ctx, c, set, pods); err == nil && done {
			restless, err = orNotReady(ctx, c, restless, pods)
		}
		if err != nil {
			return a, err
		}
	}
	if done {
		a.State = restlessly(fmt.Sprintf("%s is complete: %s of the newest revision %s available", self,
			why.Count(int(want), "replica"), areOrIs(want)), restless)
		a.Causes, a.Well = restless, len(restless) == 0
		return a, nil
	}
	a.State = fmt.Sprintf("%s is not complete: of %s, %d of the newest revision, %d available.", self,
		why.Count(int(want), "replica"), s.UpdatedReplicas, s.AvailableReplicas)
	if a.Causes = unobserved(c, self, d, s.ObservedGeneration); len(a.Causes) > 0 {
		return a, nil
	}
	if d.Spec.Paused && s.UpdatedReplicas < want {
		a.Causes = append(a.Causes, why.Cause{Code: "Paused",
			Text:     "The rollout is paused: changes of the template wait until it is resumed.",
			Evidence: []why.Evidence{why.See(self, ".spec.paused", "true")},
			Fixes: []why.Fix{{Text: "Resume it.",
				Command: why.Command("kubectl rollout resume deployment/%s%s", d.Name, self.Flag())}}})
	}
	a.Causes = append(a.Causes, restless...)
	var fresh, others []why.Cause // of the newest revision, and of those before it
	old := 0
	if newest != nil {
		fresh = refusedPods(ctx, c, why.ObjectOf("apps", "ReplicaSet", newest))
	}
	for _, set := range ordered(sets, newest) {
		pods := podsOf(ctx, c, d.Namespace, set.UID)
		causes, err := notReady(ctx, c, pods)
		if err != nil {
			return a, err
		}
		if set == newest {
			fresh = append(fresh, causes...)
			continue
		}
		old += len(pods)
		others = append(others, causes...)
	}
	if stuck := deadlocked(self, d, want, old, fresh); stuck != nil {
		fresh = stuck
	}
	a.Causes = slices.Concat(a.Causes, fresh, others)
	if len(a.Causes) == 0 {
		a.Causes = conditions(self, s.Conditions)
	}
	if len(a.Causes) == 0 && newest != nil && s.UpdatedReplicas == want && s.AvailableReplicas < want &&
		d.Spec.MinReadySeconds > 0 {
		a.Causes = append(a.Causes, why.Cause{Code: "MinReadySeconds",
			Text: fmt.Sprintf("Its pods are ready, and count as available after minReadySeconds (%d s).",
				d.Spec.MinReadySeconds),
			Evidence: []why.Evidence{why.See(self, ".spec.minReadySeconds", fmt.Sprint(d.Spec.MinReadySeconds))}})
	}
	if len(a.Causes) == 0 {
		a.Causes = append(a.Causes, oldPods(ctx, c, d, sets, newest)...)
	}
	return a, nil
}

func areOrIs(n int32) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// conditions explain by what the controller itself says.
func conditions(self why.Object, list []appsv1.DeploymentCondition) (causes []why.Cause) {
	for _, cond := range list {
		if cond.Type == appsv1.DeploymentReplicaFailure && cond.Status == corev1.ConditionTrue ||
			cond.Type == appsv1.DeploymentProgressing && cond.Status == corev1.ConditionFalse {
			causes = append(causes, why.Cause{Code: cond.Reason,
				Text: "The controller says: " + why.Quote(cond.Message) + ".",
				Evidence: []why.Evidence{why.Condition(self, string(cond.Type), string(cond.Status), cond.Reason,
					cond.Message, cond.LastTransitionTime)}})
		}
	}
	return causes
}

// setsOf returns the Deployment's ReplicaSets and the one of the newest revision.
func setsOf(ctx context.Context, c *why.Case, d *appsv1.Deployment) (sets []*appsv1.ReplicaSet,
	newest *appsv1.ReplicaSet) {
	all, _ := why.List[appsv1.ReplicaSet](ctx, c.World, d.Namespace, nil)
	for _, rs := range all {
		if o := metav1.GetControllerOf(rs); o == nil || o.UID != d.UID {
			continue
		}
		sets = append(sets, rs)
		if rs.Annotations[revision] == d.Annotations[revision] {
			newest = rs
		}
	}
	return sets, newest
}

// ordered puts the newest ReplicaSet first: its pods are the ones that a rollout waits for.
func ordered(sets []*appsv1.ReplicaSet, newest *appsv1.ReplicaSet) (list []*appsv1.ReplicaSet) {
	if newest != nil {
		list = append(list, newest)
	}
	for _, s := range sets {
		if s != newest {
			list = append(list, s)
		}
	}
	return list
}

// oldPods explains a rollout that waits for pods to go: those of older revisions, and with the strategy Recreate all
// that are terminating.
func oldPods(ctx context.Context, c *why.Case, d *appsv1.Deployment, sets []*appsv1.ReplicaSet,
	newest *appsv1.ReplicaSet) (causes []why.Cause) {
	recreate := d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
	for _, set := range sets {
		for _, p := range podsOf(ctx, c, d.Namespace, set.UID) {
			going := p.DeletionTimestamp != nil
			if set == newest && !(recreate && going) {
				continue
			}
			o := why.ObjectOf("", "Pod", p)
			cause := why.Cause{Code: "OldPodsRemain",
				Text:     fmt.Sprintf("Pod %s of an older revision is still there.", p.Name),
				Evidence: []why.Evidence{why.See(o, ".metadata.ownerReferences", set.Name)}}
			if recreate && going {
				cause.Text = fmt.Sprintf("Its strategy is Recreate: new pods are made when all old ones have gone, "+
					"and pod %s is still terminating.", p.Name)
				cause.Evidence = append(cause.Evidence, why.See(why.ObjectOf("apps", "Deployment", d),
					".spec.strategy.type",
					string(d.Spec.Strategy.Type)))
			}
			cause.Because, _ = c.Causes(ctx, o)
			causes = append(causes, cause)
			if len(causes) == maxPods {
				return causes
			}
		}
	}
	return causes
}
