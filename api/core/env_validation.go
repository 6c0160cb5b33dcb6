package core

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateEnv checks a container's variables.
func validateEnv(vars []corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range vars {
		v, at := &vars[i], path.Index(i)
		if v.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else {
			errs = append(errs, invalid(at.Child("name"), v.Name, validation.IsRelaxedEnvVarName(v.Name))...)
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
		errs = append(errs, validateFieldRef(s.FieldRef, envFields(), path.Child("fieldRef"))...)
	}
	if s.ResourceFieldRef != nil {
		sources++
		errs = append(errs, validateResourceFieldRef(s.ResourceFieldRef, false, path.Child("resourceFieldRef"))...)
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
		errs = append(errs, field.Invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case v.Value != "":
		errs = append(errs, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
	}
	return errs
}

func validateKeyRef(name, key string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, invalid(path.Child("name"), name, apivalidation.NameIsDNSSubdomain(name, false))...)
	if key == "" {
		return append(errs, field.Required(path.Child("key"), ""))
	}
	return append(errs, invalid(path.Child("key"), key, validation.IsConfigMapKey(key))...)
}

func validateFileKeyRef(r *corev1.FileKeySelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.Key == "" {
		errs = append(errs, field.Required(path.Child("key"), ""))
	} else {
		errs = append(errs, invalid(path.Child("key"), r.Key, validation.IsRelaxedEnvVarName(r.Key))...)
	}
	if r.VolumeName == "" {
		errs = append(errs, field.Required(path.Child("volumeName"), ""))
	}
	if r.Path == "" {
		return append(errs, field.Required(path.Child("path"), ""))
	}
	return append(errs, validateLocalPath(r.Path, path.Child("path"))...)
}

func validateEnvFrom(sources []corev1.EnvFromSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, s := range sources {
		at := path.Index(i)
		if s.Prefix != "" {
			errs = append(errs, invalid(at.Child("prefix"), s.Prefix, validation.IsRelaxedEnvVarName(s.Prefix))...)
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
	return invalid(path, name, apivalidation.NameIsDNSSubdomain(name, false))
}

// envFields are the pod fields a variable can be set from; labels and annotations also by key: metadata.labels['x'].
func envFields() []string {
	return []string{"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
}

// volumeFields are the pod fields a downward API file can hold.
func volumeFields() []string {
	return []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}
}

// validateFieldRef checks a reference to a field of the pod.
func validateFieldRef(r *corev1.ObjectFieldSelector, valid []string, path *field.Path) field.ErrorList {
	if r.APIVersion == "" {
		return field.ErrorList{field.Required(path.Child("apiVersion"), "")}
	}
	if r.FieldPath == "" {
		return field.ErrorList{field.Required(path.Child("fieldPath"), "")}
	}
	at := path.Child("fieldPath")
	if r.APIVersion != "v1" {
		return field.ErrorList{field.Invalid(at, r.FieldPath, fmt.Sprintf("error converting fieldPath: unsupported pod version: %s", r.APIVersion))}
	}
	if base, key, ok := SplitSubscript(r.FieldPath); ok {
		switch base {
		case "metadata.annotations":
			return invalid(path, key, validation.IsQualifiedName(strings.ToLower(key)))
		case "metadata.labels":
			return invalid(path, key, validation.IsQualifiedName(key))
		}
		return field.ErrorList{field.Invalid(at, r.FieldPath, "does not support subscript")}
	}
	if !knownPodField(r.FieldPath) {
		return field.ErrorList{field.Invalid(at, r.FieldPath, fmt.Sprintf("error converting fieldPath: field label not supported: %s", r.FieldPath))}
	}
	if !slices.Contains(valid, r.FieldPath) {
		return field.ErrorList{field.NotSupported(at, r.FieldPath, valid)}
	}
	return nil
}

// knownPodField tells whether a path names a field that any reference could name.
func knownPodField(path string) bool {
	return slices.Contains(append(append(envFields(), volumeFields()...), podFieldNames()...), path) || path == "spec.host"
}

// SplitSubscript splits "metadata.labels['app']" into "metadata.labels" and "app".
func SplitSubscript(path string) (base, key string, ok bool) {
	if !strings.HasSuffix(path, "']") {
		return path, "", false
	}
	base, key, ok = strings.Cut(strings.TrimSuffix(path, "']"), "['")
	if !ok || base == "" {
		return path, "", false
	}
	return base, key, true
}

// validateResourceFieldRef checks a reference to a container's own resources; a volume must name the container.
func validateResourceFieldRef(r *corev1.ResourceFieldSelector, volume bool, path *field.Path) field.ErrorList {
	if volume && r.ContainerName == "" {
		return field.ErrorList{field.Required(path.Child("containerName"), "")}
	}
	if r.Resource == "" {
		return field.ErrorList{field.Required(path.Child("resource"), "")}
	}
	valid := sets.New("limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory")
	if !valid.Has(r.Resource) && !strings.HasPrefix(r.Resource, "limits.hugepages-") && !strings.HasPrefix(r.Resource, "requests.hugepages-") {
		return field.ErrorList{field.NotSupported(path.Child("resource"), r.Resource, sets.List(valid))}
	}
	return validateDivisor(r, path)
}

func validateDivisor(r *corev1.ResourceFieldSelector, path *field.Path) field.ErrorList {
	d := r.Divisor.String()
	if r.Divisor.IsZero() {
		return nil
	}
	at := path.Child("divisor")
	_, name, _ := strings.Cut(r.Resource, ".")
	switch {
	case name == "cpu" && d != "1m" && d != "1":
		return field.ErrorList{field.Invalid(at, r.Resource, "only divisor's values 1m and 1 are supported with the cpu resource")}
	case name == "memory", name == "ephemeral-storage", strings.HasPrefix(name, "hugepages-"):
		valid := []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
		if !slices.Contains(valid, d) {
			what := name
			if strings.HasPrefix(name, "hugepages-") {
				what = "hugepages"
			}
			if name == "ephemeral-storage" {
				what = "local ephemeral storage"
			}
			return field.ErrorList{field.Invalid(at, r.Resource, "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the "+what+" resource")}
		}
	}
	return nil
}
