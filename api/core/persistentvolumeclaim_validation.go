package core

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateVolumeClaim(c *corev1.PersistentVolumeClaim) field.ErrorList {
	return ValidateClaimSpec(&c.Spec, field.NewPath("spec"))
}

// ValidateClaimSpec checks what a claim must say, of its own or in a template: how it is accessed, its size, and what it may
// be bound to and filled from.
func ValidateClaimSpec(s *corev1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(path.Child("accessModes"), "at least 1 access mode is required"))
	}
	if s.Selector != nil {
		errs = append(errs, metavalidation.ValidateLabelSelector(s.Selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
	}
	errs = append(errs, validateAccessModes(s.AccessModes, path.Child("accessModes"))...)
	at := path.Child("resources").Key(string(corev1.ResourceStorage))
	if size, ok := s.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(at, ""))
	} else if size.Sign() <= 0 {
		errs = append(errs, field.Invalid(at, size.String(), "must be greater than zero"))
	}
	if n := s.StorageClassName; n != nil && *n != "" {
		errs = append(errs, invalid(path.Child("storageClassName"), *n, apivalidation.NameIsDNSSubdomain(*n, false))...)
	}
	errs = append(errs, validateVolumeMode(s.VolumeMode, path.Child("volumeMode"))...)
	if n := s.VolumeAttributesClassName; n != nil && *n != "" {
		errs = append(errs, invalid(path.Child("volumeAttributesClassName"), *n, apivalidation.NameIsDNSSubdomain(*n, false))...)
	}
	return append(errs, validateDataSources(s, path)...)
}

func validateDataSources(s *corev1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	d, r := s.DataSource, s.DataSourceRef
	if d != nil {
		errs = append(errs, validateDataSource(d.APIGroup, d.Kind, d.Name, path.Child("dataSource"))...)
	}
	if r != nil {
		errs = append(errs, validateDataSource(r.APIGroup, r.Kind, r.Name, path.Child("dataSourceRef"))...)
	}
	if d != nil && r != nil && (r.Namespace == nil || *r.Namespace == "") &&
		(d.Kind != r.Kind || d.Name != r.Name || !apiequality.Semantic.DeepEqual(d.APIGroup, r.APIGroup)) {
		errs = append(errs, field.Invalid(path, struct{}{}, "must match dataSourceRef"))
	}
	return errs
}

func validateDataSource(group *string, kind, name string, path *field.Path) field.ErrorList {
	errs := append(required(path.Child("name"), name), required(path.Child("kind"), kind)...)
	if group == nil || *group == "" {
		if kind != "PersistentVolumeClaim" {
			errs = append(errs, field.Invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
		}
		return errs
	}
	return append(errs, invalid(path.Child("apiGroup"), *group, validation.IsDNS1123Subdomain(*group))...)
}

// validateVolumeClaimUpdate: the spec stays, but for the volume and the class that a claim is given once, and for the size and
// the attributes of one that is bound.
func validateVolumeClaimUpdate(obj, old *corev1.PersistentVolumeClaim) field.ErrorList {
	errs := validateVolumeClaim(obj)
	path := field.NewPath("spec")
	was := old.Spec.DeepCopy()
	if was.VolumeName == "" {
		was.VolumeName = obj.Spec.VolumeName
	}
	if givenClass(obj, old) {
		was.StorageClassName = obj.Spec.StorageClassName
	} else if class := obj.Annotations[corev1.BetaStorageClassAnnotation]; class != old.Annotations[corev1.BetaStorageClassAnnotation] {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations", corev1.BetaStorageClassAnnotation), class, apivalidation.FieldImmutableErrorMsg))
	}
	if old.Status.Phase == corev1.ClaimBound {
		was.Resources.Requests, was.VolumeAttributesClassName = obj.Spec.Resources.Requests, obj.Spec.VolumeAttributesClassName
	}
	if !apiequality.Semantic.DeepEqual(obj.Spec, *was) {
		errs = append(errs, field.Forbidden(path, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"+
			diff.Diff(claimText(was), claimText(&obj.Spec))))
	}
	before, now, has := old.Spec.Resources.Requests[corev1.ResourceStorage], obj.Spec.Resources.Requests[corev1.ResourceStorage], old.Status.Capacity[corev1.ResourceStorage]
	if now.Cmp(before) < 0 && now.Cmp(has) <= 0 {
		errs = append(errs, field.Forbidden(path.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	return append(errs, apivalidation.ValidateImmutableField(obj.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
}

// givenClass tells whether the update gives a claim without a class one: the default class, or that of its old annotation in
// the annotation's place.
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
	for _, name := range sortedNames(s.Capacity) {
		errs = append(errs, validateAmount(name, s.Capacity, path.Child("capacity"))...)
	}
	statuses := []corev1.ClaimResourceStatus{corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimControllerResizeInfeasible,
		corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible, corev1.PersistentVolumeClaimNodeResizePending}
	for name, status := range s.AllocatedResourceStatuses {
		at := path.Child("allocatedResourceStatuses")
		errs = append(errs, validateStorageName(name, at)...)
		if !slices.Contains(statuses, status) {
			errs = append(errs, field.NotSupported(at, corev1.ClaimResourceStatus(name), statuses))
		}
	}
	for _, name := range sortedNames(s.AllocatedResources) {
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
	if name == corev1.ResourceStorage || strings.Contains(string(name), "/") && !isNativeResource(name) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, name, []corev1.ResourceName{corev1.ResourceStorage})}
}

// claimFields is how errors show a claim's spec: with the names of its fields in Go.
type claimFields struct {
	AccessModes []corev1.PersistentVolumeAccessMode
	Selector    *metav1.LabelSelector
	Resources   struct{ Limits, Requests corev1.ResourceList }
	VolumeName  string

	StorageClassName *string
	VolumeMode       *corev1.PersistentVolumeMode
	DataSource       *struct {
		APIGroup   *string
		Kind, Name string
	}
	DataSourceRef *struct {
		APIGroup   *string
		Kind, Name string
		Namespace  *string
	}
	VolumeAttributesClassName *string
}

func claimText(s *corev1.PersistentVolumeClaimSpec) claimFields {
	out := claimFields{AccessModes: s.AccessModes, Selector: s.Selector, VolumeName: s.VolumeName, StorageClassName: s.StorageClassName,
		VolumeMode: s.VolumeMode, VolumeAttributesClassName: s.VolumeAttributesClassName}
	out.Resources.Limits, out.Resources.Requests = s.Resources.Limits, s.Resources.Requests
	if d := s.DataSource; d != nil {
		out.DataSource = &struct {
			APIGroup   *string
			Kind, Name string
		}{d.APIGroup, d.Kind, d.Name}
	}
	if r := s.DataSourceRef; r != nil {
		out.DataSourceRef = &struct {
			APIGroup   *string
			Kind, Name string
			Namespace  *string
		}{r.APIGroup, r.Kind, r.Name, r.Namespace}
	}
	return out
}
