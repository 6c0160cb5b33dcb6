package podspec

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec/downward"
	"bonsai/api/validate"
)

// validateEnv checks a container's variables.
func validateEnv(vars []corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range vars {
		v, at := &vars[i], path.Index(i)
		if v.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else {
			errs = append(errs, validate.Invalid(at.Child("name"), v.Name, validation.IsRelaxedEnvVarName(v.Name))...)
		}
		errs = append(errs, validateValueFrom(v, at.Child("valueFrom"))...)
	}
	return errs
}

func validateValueFrom(v *corev1.EnvVar, path *field.Path) field.ErrorList {
	s := v.ValueFrom
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	sources := 0
	if s.FieldRef != nil {
		sources++
		errs = append(errs, downward.ValidateField(s.FieldRef, downward.EnvFields(), path.Child("fieldRef"))...)
	}
	if s.ResourceFieldRef != nil {
		sources++
		errs = append(errs, downward.ValidateResource(s.ResourceFieldRef, false, path.Child("resourceFieldRef"))...)
	}
	if r := s.ConfigMapKeyRef; r != nil {
		sources++
		errs = append(errs, validateKeyRef(r.Name, r.Key, path.Child("configMapKeyRef"))...)
	}
	if r := s.SecretKeyRef; r != nil {
		sources++
		errs = append(errs, validateKeyRef(r.Name, r.Key, path.Child("secretKeyRef"))...)
	}
	if r := s.FileKeyRef; r != nil {
		sources++
		errs = append(errs, validateFileKeyRef(r, path.Child("fileKeyRef"))...)
	}
	switch {
	case sources == 0:
		errs = append(errs, field.Invalid(path, "",
			"must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case v.Value != "":
		errs = append(errs, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
	}
	return errs
}

func validateKeyRef(name, key string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validate.Invalid(path.Child("name"), name, apivalidation.NameIsDNSSubdomain(name, false))...)
	if key == "" {
		return append(errs, field.Required(path.Child("key"), ""))
	}
	return append(errs, validate.Invalid(path.Child("key"), key, validation.IsConfigMapKey(key))...)
}

func validateEnvFrom(sources []corev1.EnvFromSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, s := range sources {
		at := path.Index(i)
		if s.Prefix != "" {
			errs = append(errs, validate.Invalid(at.Child("prefix"), s.Prefix,
				validation.IsRelaxedEnvVarName(s.Prefix))...)
		}
		n := 0
		if s.ConfigMapRef != nil {
			n++
			errs = append(errs, validateSourceName(s.ConfigMapRef.Name, at.Child("configMapRef", "name"))...)
		}
		if s.SecretRef != nil {
			n++
			errs = append(errs, validateSourceName(s.SecretRef.Name, at.Child("secretRef", "name"))...)
		}
		switch n {
		case 0:
			errs = append(errs, field.Invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
		case 1:
		default:
			errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
		}
	}
	return errs
}

func validateSourceName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return validate.Invalid(path, name, apivalidation.NameIsDNSSubdomain(name, false))
}
