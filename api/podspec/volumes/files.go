package volumes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec/downward"
	"bonsai/api/validate"
)

func validateSecretVolume(s *corev1.SecretVolumeSource, path *field.Path) field.ErrorList {
	errs := validate.Required(path.Child("secretName"), s.SecretName)
	errs = append(errs, validateMode(s.DefaultMode, path.Child("defaultMode"))...)
	return append(errs, validateKeysToPaths(s.Items, path.Child("items"))...)
}

func validateConfigMapVolume(s *corev1.ConfigMapVolumeSource, path *field.Path) field.ErrorList {
	errs := validate.Required(path.Child("name"), s.Name)
	errs = append(errs, validateMode(s.DefaultMode, path.Child("defaultMode"))...)
	return append(errs, validateKeysToPaths(s.Items, path.Child("items"))...)
}

func validateKeysToPaths(items []corev1.KeyToPath, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range items {
		k, at := &items[i], path.Index(i)
		errs = append(errs, validate.Required(at.Child("key"), k.Key)...)
		errs = append(errs, validate.Required(at.Child("path"), k.Path)...)
		errs = append(errs, validateLocalNonReservedPath(k.Path, at.Child("path"))...)
		errs = append(errs, validateMode(k.Mode, at.Child("mode"))...)
	}
	return errs
}

func validateDownwardVolume(s *corev1.DownwardAPIVolumeSource, path *field.Path) field.ErrorList {
	errs := validateMode(s.DefaultMode, path.Child("defaultMode"))
	return append(errs, validateDownwardFiles(s.Items, path)...)
}

func validateDownwardFiles(items []corev1.DownwardAPIVolumeFile, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range items {
		f := &items[i]
		errs = append(errs, validate.Required(path.Child("path"), f.Path)...)
		errs = append(errs, validateLocalNonReservedPath(f.Path, path.Child("path"))...)
		switch {
		case f.FieldRef != nil:
			errs = append(errs, downward.ValidateField(f.FieldRef, downward.VolumeFields(), path.Child("fieldRef"))...)
			if f.ResourceFieldRef != nil {
				errs = append(errs, field.Invalid(path, "resource",
					"fieldRef and resourceFieldRef can not be specified simultaneously"))
			}
		case f.ResourceFieldRef != nil:
			errs = append(errs, downward.ValidateResource(f.ResourceFieldRef, true, path.Child("resourceFieldRef"))...)
		default:
			errs = append(errs, field.Required(path, "one of fieldRef and resourceFieldRef is required"))
		}
		errs = append(errs, validateMode(f.Mode, path.Child("mode"))...)
	}
	return errs
}

// modeMessage is what is wrong with a file mode out of range.
const modeMessage = "must be a number between 0 and 0777 (octal), both inclusive"

func validateMode(m *int32, path *field.Path) field.ErrorList {
	if m != nil && (*m < 0 || *m > 0o777) {
		return field.ErrorList{field.Invalid(path, *m, modeMessage)}
	}
	return nil
}

// validateLocalNonReservedPath is validate.LocalPath for files of a volume, whose names may not start with "..".
func validateLocalNonReservedPath(p string, path *field.Path) field.ErrorList {
	errs := validate.LocalPath(p, path)
	if strings.HasPrefix(p, "..") && !strings.HasPrefix(p, "../") {
		errs = append(errs, field.Invalid(path, p, "must not start with '..'"))
	}
	return errs
}
