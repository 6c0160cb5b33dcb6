package deployment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/podtemplate"
)

// rollout is one reconcile of one Deployment: a private copy of it, and its ReplicaSets from the cache, oldest first. A
// ReplicaSet is copied before it is changed, and replaced by what the server answered, so that later steps of the round
// count with the new size.
type rollout struct {
	*Controller
	d    *appsv1.Deployment
	all  []*appsv1.ReplicaSet
	next *appsv1.ReplicaSet // the one with the current template; nil before it is made
	now  time.Time
}

// old returns the ReplicaSets that are to shrink.
func (r *rollout) old() []*appsv1.ReplicaSet {
	return slices.DeleteFunc(slices.Clone(r.all), func(rs *appsv1.ReplicaSet) bool {
		return r.next != nil && rs.UID == r.next.UID
	})
}

// findNext sets r.next to the oldest ReplicaSet with the current template, and keeps its revision and annotations
// current. If there is none and create is set, it creates one. Several ReplicaSets can have the same template, after a
// lost answer or by a user's hand: the oldest is the same one in every round.
//
// A rollback finds an existing ReplicaSet here. It gets the next revision: history lists templates in the order in
// which they were last current.
//
// The hash label is not compared: only the template of the ReplicaSet has it.
func (r *rollout) findNext(ctx context.Context, create bool) error {
	for _, rs := range r.all {
		if sameTemplate(&rs.Spec.Template, &r.d.Spec.Template) {
			r.next = rs
			break
		}
	}
	rev := maxRevision(r.old()) + 1
	if r.next != nil {
		return r.refreshNext(ctx, rev)
	}
	if !create || controller.Ending(r.namespaces, r.d.Namespace) {
		return nil
	}
	return r.createNext(ctx, rev)
}

// refreshNext brings the annotations and minReadySeconds of r.next up to date, then the revision and the condition of
// the Deployment. Each is written only if it differs: most rounds write nothing.
func (r *rollout) refreshNext(ctx context.Context, rev int64) error {
	rs := r.next.DeepCopy()
	changed := annotate(rs, r.d, rev, true)
	if changed || rs.Spec.MinReadySeconds != r.d.Spec.MinReadySeconds {
		rs.Spec.MinReadySeconds = r.d.Spec.MinReadySeconds
		updated, err := r.writeSets.Update(ctx, rs)
		if err != nil {
			return fmt.Errorf("updating the annotations of ReplicaSet %s: %w", rs.Name, err)
		}
		r.replace(updated)
	}
	needsUpdate := setRevision(r.d, r.next.Annotations[revisionAnnotation])
	if hasDeadline(r.d) && condition(r.d.Status, appsv1.DeploymentProgressing) == nil {
		setCondition(&r.d.Status,
			r.progressing(corev1.ConditionTrue, foundNewReplicaSet,
				fmt.Sprintf("Found new replica set %q", r.next.Name)))
		needsUpdate = true
	}
	if !needsUpdate {
		return nil
	}
	return r.saveStatus(ctx)
}

// replace exchanges a ReplicaSet for the state in which it was just written, and notes the write: the next round waits
// until the cache shows it.
func (r *rollout) replace(rs *appsv1.ReplicaSet) {
	r.written.remember(controller.KeyOf(r.d), rs.ResourceVersion)
	for i := range r.all {
		if r.all[i].UID == rs.UID {
			r.all[i] = rs
		}
	}
	if r.next != nil && r.next.UID == rs.UID {
		r.next = rs
	}
}

// createNext makes the ReplicaSet for the current template with as many replicas as the strategy allows at once. Its
// name follows from the template, so a create whose answer was lost finds the name taken instead of making a second
// one.
//
// A failure is shown in the conditions (noteCreateError), because a quota or an admission plug-in can refuse it for
// long.
func (r *rollout) createNext(ctx context.Context, rev int64) error {
	rs := r.describeNext(rev)
	made, err := r.writeSets.Create(ctx, rs)
	switch {
	case apierrors.IsAlreadyExists(err):
		if made, err = r.resolveCollision(ctx, rs); err != nil {
			return err
		}
	case controller.NamespaceEnding(err):
		return nil
	case err != nil:
		return r.noteCreateError(ctx, rs, err)
	default:
		r.written.remember(controller.KeyOf(r.d), made.ResourceVersion)
		if n := replicas(made); n > 0 {
			r.Events.Eventf(r.d, corev1.EventTypeNormal, "ScalingReplicaSet", "Scaled up replica set %s from 0 to %d",
				made.Name, n)
		}
	}
	r.next = made
	r.all = append(r.all, made)
	changed := setRevision(r.d, made.Annotations[revisionAnnotation])
	if hasDeadline(r.d) {
		setCondition(&r.d.Status,
			r.progressing(corev1.ConditionTrue, newReplicaSetCreated,
				fmt.Sprintf("Created new replica set %q", made.Name)))
		changed = true
	}
	if !changed {
		return nil
	}
	return r.saveStatus(ctx)
}

// describeNext returns the ReplicaSet for the current template. The hash of the template is in its name, its selector
// and its pods' labels, so that the ReplicaSets of one Deployment never select each other's pods.
func (r *rollout) describeNext(rev int64) *appsv1.ReplicaSet {
	d := r.d
	template := d.Spec.Template.DeepCopy()
	hash := podtemplate.Hash(template, d.Status.CollisionCount)
	template.Labels = with(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = with(selector.MatchLabels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: d.Name + "-" + hash, Namespace: d.Namespace, Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, kind())},
		},
		Spec: appsv1.ReplicaSetSpec{
			MinReadySeconds: d.Spec.MinReadySeconds, Selector: selector, Template: *template,
			Replicas: new(newReplicas(d, r.all, 0)),
		},
	}
	annotate(rs, d, rev, false)
	return rs
}

// with returns a copy of m with one more entry: m may belong to a cached object.
func with(m map[string]string, k, v string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[k] = v
	return out
}

// resolveCollision handles a name that is taken. If our own earlier create took it, that ReplicaSet is used. If not,
// the hash of another template is the same: collisionCount goes up, which changes the hash, and the error brings the
// Deployment back. The count is stored before the next try, or a restart would find the same name again.
func (r *rollout) resolveCollision(ctx context.Context, wanted *appsv1.ReplicaSet) (*appsv1.ReplicaSet, error) {
	rs, err := r.writeSets.Get(ctx, wanted.Namespace, wanted.Name)
	if err != nil {
		return nil, fmt.Errorf("reading ReplicaSet %s, whose name is taken: %w", wanted.Name, err)
	}
	if ref := metav1.GetControllerOf(rs); ref != nil && ref.UID == r.d.UID &&
		sameTemplate(&rs.Spec.Template, &r.d.Spec.Template) {
		return rs, nil
	}
	n := int32(1)
	if c := r.d.Status.CollisionCount; c != nil {
		n = *c + 1
	}
	r.d.Status.CollisionCount = &n
	if err := r.saveStatus(ctx); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("the name of ReplicaSet %s is taken by another one, collisionCount is now %d", wanted.Name,
		n)
}

// noteCreateError shows a failed create in the Deployment's conditions and as an event, and returns the error. A
// failure to write the condition is only logged: the create's error is the one that matters, and brings the round back.
func (r *rollout) noteCreateError(ctx context.Context, rs *appsv1.ReplicaSet, cause error) error {
	msg := fmt.Sprintf("Failed to create new replica set %q: %v", rs.Name, cause)
	if hasDeadline(r.d) {
		setCondition(&r.d.Status, r.progressing(corev1.ConditionFalse, replicaSetCreateError, msg))
		if err := r.saveStatus(ctx); err != nil {
			r.Log.Debug("status not updated", "deployment", r.d.Name, "err", err)
		}
	}
	r.Events.Event(r.d, corev1.EventTypeWarning, replicaSetCreateError, msg)
	return fmt.Errorf("creating ReplicaSet %s: %w", rs.Name, cause)
}

// saveStatus stores r.d's status (and its revision annotation) and goes on with what the server made of it.
//
// Its resourceVersion is the new one afterwards, so a second write of the round is no conflict with the first.
func (r *rollout) saveStatus(ctx context.Context) error {
	updated, err := r.writeDeployments.UpdateStatus(ctx, r.d)
	if err != nil {
		return fmt.Errorf("updating the status of Deployment %s: %w", r.d.Name, err)
	}
	r.d = updated
	return nil
}

// resize gives a ReplicaSet n replicas and the annotations that remember the Deployment's size. It reports whether the
// number of replicas changed.
//
// The update carries the resourceVersion that was judged: a ReplicaSet that somebody scaled meanwhile is a conflict,
// not overwritten.
func (r *rollout) resize(ctx context.Context, rs *appsv1.ReplicaSet, n int32) (bool, error) {
	before := replicas(rs)
	updated := rs.DeepCopy()
	annotated := annotateSize(updated, r.d)
	if before == n && !annotated {
		return false, nil
	}
	updated.Spec.Replicas = &n
	updated, err := r.writeSets.Update(ctx, updated)
	if err != nil {
		return false, fmt.Errorf("scaling ReplicaSet %s from %d to %d: %w", rs.Name, before, n, err)
	}
	r.replace(updated)
	if before == n {
		return false, nil
	}
	direction := "up"
	if n < before {
		direction = "down"
	}
	r.Events.Eventf(r.d, corev1.EventTypeNormal, "ScalingReplicaSet", "Scaled %s replica set %s from %d to %d",
		direction, rs.Name, before, n)
	return true, nil
}

// apply resizes each ReplicaSet to its target, which changes only those that differ.
func (r *rollout) apply(ctx context.Context, targets []target) (changed bool, err error) {
	for _, t := range targets {
		did, err := r.resize(ctx, t.rs, t.replicas)
		if err != nil {
			return changed, err
		}
		changed = changed || did
	}
	return changed, nil
}

// roll is the RollingUpdate strategy: grow the new ReplicaSet as far as maxSurge allows, then shrink the old ones as
// far as maxUnavailable allows. A round does one of the two. Its write changes a ReplicaSet, whose event brings the
// next round, which counts the pods again: both limits hold at every moment, whatever fails in between.
func (r *rollout) roll(ctx context.Context) (controller.Result, error) {
	if err := r.findNext(ctx, true); err != nil || r.next == nil {
		return controller.Result{}, err
	}
	grew, err := r.growNext(ctx)
	if err != nil {
		return controller.Result{}, err
	}
	if grew {
		return r.report(ctx, true)
	}
	shrank, err := r.apply(ctx, shrinkOld(r.d, r.next, r.old()))
	if err != nil {
		return controller.Result{}, err
	}
	if !shrank {
		if err := r.cleanUp(ctx); err != nil {
			return controller.Result{}, err
		}
	}
	return r.report(ctx, true)
}

// growNext resizes the new ReplicaSet, and reports whether that changed it. A new ReplicaSet that is too large, after a
// scale-down in the middle of a rollout, shrinks to the Deployment's size at once.
func (r *rollout) growNext(ctx context.Context) (bool, error) {
	want := *r.d.Spec.Replicas
	if replicas(r.next) < want {
		want = newReplicas(r.d, r.all, replicas(r.next))
	}
	if replicas(r.next) == want {
		return false, nil
	}
	return r.resize(ctx, r.next, want)
}

// recreate is the Recreate strategy: stop all old pods, wait until they are gone, then start all new ones. It creates
// the new ReplicaSet last: until then nothing may start a pod with the new template.
//
// Pods of two templates never run at the same time, which is what the strategy is for. A terminating pod still counts
// as running, because it may hold a lock or a volume.
func (r *rollout) recreate(ctx context.Context) (controller.Result, error) {
	if err := r.findNext(ctx, false); err != nil {
		return controller.Result{}, err
	}
	var down []target
	for _, rs := range active(r.old()) {
		down = append(down, target{rs, 0})
	}
	stopped, err := r.apply(ctx, down)
	if err != nil {
		return controller.Result{}, err
	}
	if stopped || r.oldPodsRun() {
		return r.report(ctx, true)
	}
	if r.next == nil {
		if err := r.findNext(ctx, true); err != nil || r.next == nil {
			return controller.Result{}, err
		}
	}
	if _, err := r.resize(ctx, r.next, *r.d.Spec.Replicas); err != nil {
		return controller.Result{}, err
	}
	if err := r.cleanUp(ctx); err != nil {
		return controller.Result{}, err
	}
	return r.report(ctx, true)
}

// oldPodsRun reports whether a pod of an old ReplicaSet may still do work; one that is being deleted may.
//
// The pods are read from the cache of pods: the status of a ReplicaSet may be late.
func (r *rollout) oldPodsRun() bool {
	for _, rs := range r.old() {
		for _, p := range r.pods.OwnedBy(rs.UID) {
			if !controller.PodTerminal(p) {
				return true
			}
		}
	}
	return false
}

// scaled reports whether the Deployment's size changed since its ReplicaSets were last resized. Each resize notes the
// size in an annotation, because a change of size in the middle of a rollout is shared among all ReplicaSets
// (proportional scaling), and is not a step of the rollout.
func (r *rollout) scaled() bool {
	for _, rs := range active(r.all) {
		if desired, ok := sizeOf(rs, desiredAnnotation); ok && desired != *r.d.Spec.Replicas {
			return true
		}
	}
	return false
}

// scale follows a new size. It creates no ReplicaSet and moves no pods between templates. It is also all that a round
// does for a paused Deployment, together with the removal of surplus history.
//
// Old ReplicaSets beyond the history go here only when it is paused: otherwise the rollout cleans up at its end.
func (r *rollout) scale(ctx context.Context) (controller.Result, error) {
	if err := r.findNext(ctx, false); err != nil {
		return controller.Result{}, err
	}
	if _, err := r.apply(ctx, scaleTargets(r.d, r.next, r.old())); err != nil {
		return controller.Result{}, err
	}
	if r.d.Spec.Paused {
		if err := r.deleteSurplus(ctx); err != nil {
			return controller.Result{}, err
		}
	}
	return r.report(ctx, false)
}

// cleanUp removes surplus history once the rollout is complete.
func (r *rollout) cleanUp(ctx context.Context) error {
	if !complete(r.d, r.d.Status) {
		return nil
	}
	return r.deleteSurplus(ctx)
}

// deleteSurplus deletes the oldest ReplicaSets without pods beyond revisionHistoryLimit. The UID in the request keeps a
// ReplicaSet of the same name that was made since.
func (r *rollout) deleteSurplus(ctx context.Context) error {
	for _, rs := range surplus(r.d, r.old()) {
		if err := r.writeSets.Delete(ctx, rs.Namespace, rs.Name, rs.UID); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting old ReplicaSet %s: %w", rs.Name, err)
		}
	}
	return nil
}
