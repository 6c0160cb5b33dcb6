package invariants

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkCollected: what no user deleted goes because all its owners have gone, or because one of them waits for it to
// go. A controller may also take away what is its own: a ReplicaSet's or a Job's pods, a Deployment's empty
// ReplicaSets, a volume's attachments.
func (w *world) checkCollected(o metav1.Object) {
	switch o := o.(type) {
	case *corev1.Pod:
		if c := owner(o); w.sets[c] != nil || w.stateful[c] != nil || w.jobs[c] != nil || w.evicted[o.UID] {
			return
		}
	case *appsv1.ReplicaSet:
		if *o.Spec.Replicas == 0 && w.deployments[owner(o)] != nil {
			return
		}
	case *storagev1.VolumeAttachment:
		return
	case *batchv1.Job, *appsv1.Deployment, *appsv1.StatefulSet, *corev1.ConfigMap, *corev1.PersistentVolumeClaim,
		*corev1.PersistentVolume, *corev1.Node:
	}
	refs := o.GetOwnerReferences()
	if len(refs) == 0 {
		w.report(collected, "%T %s, which has no owner", o, name(o))
	}
	for _, ref := range refs {
		if who := w.all[ref.UID]; w.lives(who, ref, o) {
			w.report(collected, "%T %s, whose owner %s lives", o, name(o), name(who))
		}
	}
}

// lives reports whether the owner is there, is the one that the reference means, and does not wait for what it owns to
// go.
func (w *world) lives(who metav1.Object, ref metav1.OwnerReference, o metav1.Object) bool {
	if _, isMap := who.(*corev1.ConfigMap); isMap && ref.Kind != "ConfigMap" {
		return false
	}
	if who == nil || who.GetName() != ref.Name || who.GetNamespace() != "" && who.GetNamespace() != o.GetNamespace() {
		return false
	}
	if who.GetDeletionTimestamp() == nil {
		return true
	}
	for _, f := range who.GetFinalizers() {
		if f == metav1.FinalizerDeleteDependents {
			return false
		}
	}
	return true
}
