package core

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec/volumes"
	"bonsai/api/quantity"
)

func validateVolumeClaim(c *corev1.PersistentVolumeClaim) field.ErrorList {
	return volumes.ValidateClaim(&c.Spec, field.NewPath("spec"))
}

// validateVolumeClaimUpdate: the spec stays, except for the volume and the class that a claim is given once, and for
// the size and the attributes of one that is bound.
func validateVolumeClaimUpdate(obj, old *corev1.PersistentVolumeClaim) field.ErrorList {
	errs := validateVolumeClaim(obj)
	path := field.NewPath("spec")
	was := old.Spec.DeepCopy()
	if was.VolumeName == "" {
		was.VolumeName = obj.Spec.VolumeName
	}
	if givenClass(obj, old) {
		was.StorageClassName = obj.Spec.StorageClassName
	} else if class := obj.Annotations[corev1.BetaStorageClassAnnotation]; class !=
		old.Annotations[corev1.BetaStorageClassAnnotation] {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations", corev1.BetaStorageClassAnnotation),
			class, apivalidation.FieldImmutableErrorMsg))
	}
	if old.Status.Phase == corev1.ClaimBound {
		was.Resources.Requests, was.VolumeAttributesClassName = obj.Spec.Resources.Requests,
			obj.Spec.VolumeAttributesClassName
	}
	if !apiequality.Semantic.DeepEqual(obj.Spec, *was) {
		errs = append(errs, field.Forbidden(path,
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"+
				diff.Diff(was, &obj.Spec)))
	}
	before, now, has := old.Spec.Resources.Requests[corev1.ResourceStorage],
		obj.Spec.Resources.Requests[corev1.ResourceStorage], old.Status.Capacity[corev1.ResourceStorage]
	if now.Cmp(before) < 0 && now.Cmp(has) <= 0 {
		errs = append(errs, field.Forbidden(path.Child("resources", "requests", "storage"),
			"field can not be less than status.capacity"))
	}
	return append(errs, apivalidation.ValidateImmutableField(obj.Spec.VolumeMode, old.Spec.VolumeMode,
		field.NewPath("volumeMode"))...)
}

// givenClass reports whether the update gives a claim without a class one: the default class, or that of its old
// annotation in the annotation's place.
func givenClass(obj, old *corev1.PersistentVolumeClaim) bool {
	if old.Spec.StorageClassName != nil || obj.Spec.StorageClassName == nil {
		return false
	}
	class, annotated := old.Annotations[corev1.BetaStorageClassAnnotation]
	_, still := obj.Annotations[corev1.BetaStorageClassAnnotation]
	return !still && (!annotated || class == *obj.Spec.StorageClassName)
}

// validateVolumeClaimStatus checks amounts, and the states of those that are being changed.
func validateVolumeClaimStatus(s *corev1.PersistentVolumeClaimStatus) field.ErrorList {
	path := field.NewPath("status")
	var errs field.ErrorList
	for _, name := range quantity.Names(s.Capacity) {
		errs = append(errs, validateAmount(name, s.Capacity, path.Child("capacity"))...)
	}
	statuses := []corev1.ClaimResourceStatus{corev1.PersistentVolumeClaimControllerResizeInProgress,
		corev1.PersistentVolumeClaimControllerResizeInfeasible,
		corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible,
		corev1.PersistentVolumeClaimNodeResizePending}
	for name, status := range s.AllocatedResourceStatuses {
		at := path.Child("allocatedResourceStatuses")
		errs = append(errs, validateStorageName(name, at)...)
		if !slices.Contains(statuses, status) {
			errs = append(errs, field.NotSupported(at, corev1.ClaimResourceStatus(name), statuses))
		}
	}
	for _, name := range quantity.Names(s.AllocatedResources) {
		at := path.Child("allocatedResources")
		if bad := validateStorageName(name, at); len(bad) > 0 {
			errs = append(errs, bad...)
			continue
		}
		errs = append(errs, validateAmount(name, s.AllocatedResources, at)...)
	}
	return errs
}

// validateStorageName: storage, or something of a driver's own.
func validateStorageName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	if name == corev1.ResourceStorage || strings.Contains(string(name), "/") && !quantity.IsNative(name) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, name, []corev1.ResourceName{corev1.ResourceStorage})}
}
