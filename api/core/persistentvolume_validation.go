package core

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec"
	"bonsai/api/podspec/volumes"
	"bonsai/api/quantity"
	"bonsai/api/validate"
)

func validatePersistentVolume(v *corev1.PersistentVolume) field.ErrorList {
	s, at := &v.Spec, field.NewPath("spec")
	errs := validateVolumeModes(s, at)
	errs = append(errs, validateCapacity(s.Capacity, at.Child("capacity"))...)
	errs = append(errs, validate.OneOfOrEmpty(at.Child("persistentVolumeReclaimPolicy"),
		s.PersistentVolumeReclaimPolicy,
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle,
		corev1.PersistentVolumeReclaimRetain)...)
	errs = append(errs, validateVolumeAffinity(s, at)...)
	errs = append(errs, volumes.ValidatePersistent(&s.PersistentVolumeSource, at)...)
	if s.HostPath != nil && path.Clean(s.HostPath.Path) == "/" &&
		s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		errs = append(errs, field.Forbidden(at.Child("persistentVolumeReclaimPolicy"),
			"may not be 'recycle' for a hostPath mount of '/'"))
	}
	if s.StorageClassName != "" {
		errs = append(errs, validate.Invalid(at.Child("storageClassName"), s.StorageClassName,
			apivalidation.NameIsDNSSubdomain(s.StorageClassName, false))...)
	}
	errs = append(errs, volumes.ValidateMode(s.VolumeMode, at.Child("volumeMode"))...)
	return append(errs, validateVolumeAttributes(s, at)...)
}

// ValidateVolumeSource checks what a volume is and how it may be used, also of one that a VolumeAttachment brings
// along.
func ValidateVolumeSource(s *corev1.PersistentVolumeSpec, path *field.Path) field.ErrorList {
	return append(validateVolumeModes(s, path), volumes.ValidatePersistent(&s.PersistentVolumeSource, path)...)
}

func validateVolumeModes(s *corev1.PersistentVolumeSpec, path *field.Path) field.ErrorList {
	at := path.Child("accessModes")
	var errs field.ErrorList
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(at, ""))
	}
	return append(errs, volumes.ValidateAccessModes(s.AccessModes, at)...)
}

// validateCapacity: a volume has storage, and nothing else.
func validateCapacity(l corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(l) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	if _, ok := l[corev1.ResourceStorage]; !ok || len(l) > 1 {
		errs = append(errs, field.NotSupported(path, l, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	for _, name := range quantity.Names(l) {
		q := l[name]
		errs = append(errs, validateAmount(name, l, path)...)
		if q.Sign() <= 0 {
			errs = append(errs, field.Invalid(path.Key(string(name)), q.String(), "must be greater than zero"))
		}
	}
	return errs
}

// validateAmount: what a volume has is not negative.
func validateAmount(name corev1.ResourceName, l corev1.ResourceList, path *field.Path) field.ErrorList {
	q := l[name]
	if q.Value() < 0 {
		return field.ErrorList{field.Invalid(path.Key(string(name)), q.Value(), "must be a valid resource quantity")}
	}
	return nil
}

// validateVolumeAffinity: a volume that is local to a node says which.
func validateVolumeAffinity(s *corev1.PersistentVolumeSpec, path *field.Path) field.ErrorList {
	at := path.Child("nodeAffinity")
	switch {
	case s.NodeAffinity == nil && s.Local != nil:
		return field.ErrorList{field.Required(at, "Local volume requires node affinity")}
	case s.NodeAffinity == nil:
		return nil
	case s.NodeAffinity.Required == nil:
		return field.ErrorList{field.Required(at.Child("required"), "must specify required node constraints")}
	}
	return podspec.ValidateNodeSelector(s.NodeAffinity.Required, at.Child("required"))
}

func validateVolumeAttributes(s *corev1.PersistentVolumeSpec, path *field.Path) field.ErrorList {
	class, at := s.VolumeAttributesClassName, path.Child("volumeAttributesClassName")
	if class == nil {
		return nil
	}
	var errs field.ErrorList
	if *class == "" {
		errs = append(errs, field.Required(at, "an empty string is disallowed"))
	} else {
		errs = append(errs, validate.Invalid(at, *class, apivalidation.NameIsDNSSubdomain(*class, false))...)
	}
	if s.CSI == nil {
		errs = append(errs, field.Required(path.Child("csi"),
			"has to be specified when using volumeAttributesClassName"))
	}
	return errs
}

// validatePersistentVolumeUpdate: what the volume is stays; who has it, its size and what becomes of it may change.
// Kubernetes looks at the new one twice, and so tells everything twice.
func validatePersistentVolumeUpdate(obj, old *corev1.PersistentVolume) field.ErrorList {
	errs := validatePersistentVolume(obj)
	errs = append(errs, errs...)
	was := old.Spec.PersistentVolumeSource.DeepCopy()
	if was.CSI != nil && obj.Spec.CSI != nil { // the one part of a source that may change
		was.CSI.ControllerExpandSecretRef = obj.Spec.CSI.ControllerExpandSecretRef
	}
	if !apiequality.Semantic.DeepEqual(obj.Spec.PersistentVolumeSource, *was) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "persistentvolumesource"),
			"spec.persistentvolumesource is immutable after creation\n"+
				diff.Diff(*was, obj.Spec.PersistentVolumeSource)))
	}
	errs = append(errs, apivalidation.ValidateImmutableField(obj.Spec.VolumeMode, old.Spec.VolumeMode,
		field.NewPath("volumeMode"))...)
	if old.Spec.NodeAffinity != nil && !apiequality.Semantic.DeepEqual(obj.Spec.NodeAffinity, old.Spec.NodeAffinity) {
		errs = append(errs, field.Invalid(field.NewPath("nodeAffinity"), obj.Spec.NodeAffinity,
			"field is immutable, except for updating from beta label to GA"))
	}
	if old.Spec.VolumeAttributesClassName != nil && obj.Spec.VolumeAttributesClassName == nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "volumeAttributesClassName"),
			"update from non-nil value to nil is forbidden"))
	}
	return errs
}
