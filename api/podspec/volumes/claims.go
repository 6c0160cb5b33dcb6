package volumes

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/quantity"
	"bonsai/api/validate"
)

// DefaultClaim fills in what a client left out of a claim on storage, of its own or in a template.
func DefaultClaim(s *corev1.PersistentVolumeClaimSpec) {
	defaults.SetPtr(&s.VolumeMode, corev1.PersistentVolumeFilesystem)
	quantity.RoundUp(s.Resources.Limits)
	quantity.RoundUp(s.Resources.Requests)
}

// ValidateClaim checks what a claim must say, of its own or in a template: how it is accessed, its size, and what it
// may be bound to and filled from.
func ValidateClaim(s *corev1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(path.Child("accessModes"), "at least 1 access mode is required"))
	}
	errs = append(errs, validate.LabelSelector(s.Selector, path.Child("selector"))...)
	errs = append(errs, ValidateAccessModes(s.AccessModes, path.Child("accessModes"))...)
	at := path.Child("resources").Key(string(corev1.ResourceStorage))
	if size, ok := s.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(at, ""))
	} else if size.Sign() <= 0 {
		errs = append(errs, field.Invalid(at, size.String(), "must be greater than zero"))
	}
	if n := s.StorageClassName; n != nil && *n != "" {
		errs = append(errs, validate.Invalid(path.Child("storageClassName"), *n,
			apivalidation.NameIsDNSSubdomain(*n, false))...)
	}
	errs = append(errs, ValidateMode(s.VolumeMode, path.Child("volumeMode"))...)
	if n := s.VolumeAttributesClassName; n != nil && *n != "" {
		errs = append(errs, validate.Invalid(path.Child("volumeAttributesClassName"), *n,
			apivalidation.NameIsDNSSubdomain(*n, false))...)
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
	errs := append(validate.Required(path.Child("name"), name), validate.Required(path.Child("kind"), kind)...)
	if group == nil || *group == "" {
		if kind != "PersistentVolumeClaim" {
			errs = append(errs, field.Invalid(path, kind,
				"must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
		}
		return errs
	}
	return append(errs, validate.Invalid(path.Child("apiGroup"), *group, validation.IsDNS1123Subdomain(*group))...)
}

// ValidateAccessModes checks how a volume or claim is accessed; none at all is for the caller to refuse.
func ValidateAccessModes(modes []corev1.PersistentVolumeAccessMode, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	single, others := false, false
	for _, m := range modes {
		switch m {
		case corev1.ReadWriteOncePod:
			single = true
		case corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce:
			others = true
		default:
			errs = append(errs, field.NotSupported(path, m,
				[]corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce,
					corev1.ReadWriteOncePod}))
		}
	}
	if single && others {
		errs = append(errs, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}

// ValidateMode checks whether a volume is a file system or a block device; nil is neither yet.
func ValidateMode(m *corev1.PersistentVolumeMode, path *field.Path) field.ErrorList {
	if m == nil || *m == corev1.PersistentVolumeBlock || *m == corev1.PersistentVolumeFilesystem {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *m,
		[]corev1.PersistentVolumeMode{corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem})}
}
