package statefulset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
)

// claimName is the name of the claim that the pod has of a template: the pod's name follows the template's.
func claimName(template, pod string) string { return template + "-" + pod }

// claimFor makes the pod's claim of a template, with the labels that the set selects by.
func claimFor(set *appsv1.StatefulSet, template *corev1.PersistentVolumeClaim,
	p *corev1.Pod) *corev1.PersistentVolumeClaim {
	claim := template.DeepCopy()
	claim.Namespace, claim.Name = set.Namespace, claimName(template.Name, p.Name)
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	maps.Copy(claim.Labels, set.Spec.Selector.MatchLabels)
	claim.OwnerReferences = claimOwners(set, p, false, claim.OwnerReferences)
	claim.Status = corev1.PersistentVolumeClaimStatus{}
	return claim
}

// policies says whether claims go with the set, and with pods that scaling down takes away; they stay unless the set
// says so.
//
// The field is KEP-1847. The claims of a set hold data that no template brings back, which is why they stay by default.
func policies(set *appsv1.StatefulSet) (withSet, withPod bool) {
	p := set.Spec.PersistentVolumeClaimRetentionPolicy
	if p == nil {
		return false, false
	}
	return p.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		p.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
}

// claimOwners returns the owners that a claim of pod p should have: the garbage collector deletes it with the set or,
// once the set has no place for p, with p. Owners of others' making stay, and a claim that one of them controls is
// theirs alone.
//
// Only references to the set and to this pod are touched. The uid of the pod matters: a reference to an earlier pod of
// the name is the sign that the claim is about to go (ofPod).
func claimOwners(set *appsv1.StatefulSet, p *corev1.Pod, surplus bool,
	old []metav1.OwnerReference) []metav1.OwnerReference {
	owners := slices.DeleteFunc(slices.Clone(old), func(r metav1.OwnerReference) bool {
		return r.UID == set.UID || r.UID == p.UID && p.UID != ""
	})
	if slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller }) {
		return old
	}
	switch withSet, withPod := policies(set); {
	case surplus && withPod:
		owners = append(owners, *metav1.NewControllerRef(p, corev1.SchemeGroupVersion.WithKind("Pod")))
	case withSet:
		owners = append(owners, *metav1.NewControllerRef(set, kind()))
	}
	return owners
}

// ofPod reports whether the claim belongs to an earlier pod of the same name: it is about to go, and must before the
// next pod can have one.
//
// With the policy Delete such a claim is on its way out, and a new pod that used it would lose its data in a moment.
func ofPod(claim *corev1.PersistentVolumeClaim, p *corev1.Pod) bool {
	return slices.ContainsFunc(claim.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == "Pod" && r.Name == p.Name && r.UID != p.UID
	})
}

// provide creates the missing claims of pod p, which is about to be created or does not run yet. Existing claims are
// used as they are, which is how data outlives its pod. The error begins with the name of the claim that cannot be
// used; a claim that is being deleted is one, because its successor needs the same name.
func (c *Controller) provide(ctx context.Context, set *appsv1.StatefulSet, p *corev1.Pod) error {
	var errs []error
	for i := range set.Spec.VolumeClaimTemplates {
		t := &set.Spec.VolumeClaimTemplates[i]
		name := claimName(t.Name, p.Name)
		if have, ok := c.claims.Get(controller.Key{Namespace: set.Namespace, Name: name}); ok {
			if have.DeletionTimestamp != nil || ofPod(have, p) {
				errs = append(errs, fmt.Errorf("%s: the claim of the pod before it is being deleted", name))
			}
			continue
		}
		_, err := c.writeClaims.Create(ctx, claimFor(set, t, p))
		if apierrors.IsAlreadyExists(err) {
			continue // the cache is late
		}
		c.sayClaim(set, name, p.Name, err)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// retain gives the claims of all pods the owners that the set's policies want, those of surplus pods before these are
// deleted, and pods that do not run yet the claims they miss.
//
// The surplus pods come before their deletion: once a pod is gone, its uid is unknown, and a claim that should go with
// it would stay forever.
func (c *Controller) retain(ctx context.Context, s *state) error {
	if len(s.set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	replicas, surplus := s.split()
	var errs []error
	for _, p := range replicas {
		if p != nil {
			errs = append(errs, c.reown(ctx, s.set, p, false))
			// it may wait for a claim that somebody deleted A claim that somebody deleted is replaced, or the pod would
			// stay pending forever.
			if p.Status.Phase == corev1.PodPending && p.DeletionTimestamp == nil {
				errs = append(errs, c.provide(ctx, s.set, p))
			}
		}
	}
	for _, p := range surplus {
		errs = append(errs, c.reown(ctx, s.set, p, true))
	}
	return errors.Join(errs...)
}

// reown writes the owners of one pod's claims. The update carries the cached resourceVersion, so that owners which
// others added since are not lost; a conflict brings the set back.
func (c *Controller) reown(ctx context.Context, set *appsv1.StatefulSet, p *corev1.Pod, surplus bool) error {
	var errs []error
	for i := range set.Spec.VolumeClaimTemplates {
		claim, ok := c.claims.Get(
			controller.Key{Namespace: set.Namespace, Name: claimName(set.Spec.VolumeClaimTemplates[i].Name, p.Name)})
		if !ok || claim.DeletionTimestamp != nil {
			continue
		}
		owners := claimOwners(set, p, surplus, claim.OwnerReferences)
		if apiequality.Semantic.DeepEqual(owners, claim.OwnerReferences) {
			continue
		}
		claim = claim.DeepCopy()
		claim.OwnerReferences = owners
		if _, err := c.writeClaims.Update(ctx, claim); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("writing the owners of claim %s/%s: %w", claim.Namespace, claim.Name, err))
		}
	}
	return errors.Join(errs...)
}
