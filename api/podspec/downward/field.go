// Package downward holds the rules of the downward API: which fields of a pod, and which resources of its containers,
// an environment variable or a file of a volume can be set from.
package downward

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/validate"
)

// EnvFields are the pod fields a variable can be set from; labels and annotations also by key: metadata.labels['x'].
func EnvFields() []string {
	return []string{"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
}

// VolumeFields are the pod fields a downward API file can hold.
func VolumeFields() []string {
	return []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}
}

// ValidateField checks a reference to a field of the pod, which must be one of valid: EnvFields or VolumeFields.
func ValidateField(r *corev1.ObjectFieldSelector, valid []string, path *field.Path) field.ErrorList {
	if r.APIVersion == "" {
		return field.ErrorList{field.Required(path.Child("apiVersion"), "")}
	}
	if r.FieldPath == "" {
		return field.ErrorList{field.Required(path.Child("fieldPath"), "")}
	}
	at := path.Child("fieldPath")
	if r.APIVersion != "v1" {
		return field.ErrorList{field.Invalid(at, r.FieldPath,
			fmt.Sprintf("error converting fieldPath: unsupported pod version: %s", r.APIVersion))}
	}
	if base, key, ok := splitSubscript(r.FieldPath); ok {
		switch base {
		case "metadata.annotations":
			return validate.Invalid(path, key, validation.IsQualifiedName(strings.ToLower(key)))
		case "metadata.labels":
			return validate.Invalid(path, key, validation.IsQualifiedName(key))
		}
		return field.ErrorList{field.Invalid(at, r.FieldPath, "does not support subscript")}
	}
	switch {
	case slices.Contains(valid, r.FieldPath):
		return nil
	case !knownPodField(r.FieldPath):
		return field.ErrorList{field.Invalid(at, r.FieldPath,
			fmt.Sprintf("error converting fieldPath: field label not supported: %s", r.FieldPath))}
	}
	return field.ErrorList{field.NotSupported(at, r.FieldPath, valid)}
}

// knownPodField reports whether a path names a field that any reference could name.
func knownPodField(path string) bool {
	return slices.Contains(append(append(EnvFields(), VolumeFields()...), Selectable()...), path) || path == "spec.host"
}

// splitSubscript splits "metadata.labels['app']" into "metadata.labels" and "app".
func splitSubscript(path string) (base, key string, ok bool) {
	if !strings.HasSuffix(path, "']") {
		return path, "", false
	}
	base, key, ok = strings.Cut(strings.TrimSuffix(path, "']"), "['")
	if !ok || base == "" {
		return path, "", false
	}
	return base, key, true
}

// Selectable are the fields of pods that lists can be selected by. They stand here because Kubernetes has one table for
// both: a reference to one of them is answered as "not supported here", to any other field as "unknown".
func Selectable() []string {
	return []string{"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
		"spec.hostNetwork",
		"status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"}
}

// Default fills in the version of the pod that a reference is to; nil has none.
func Default(r *corev1.ObjectFieldSelector) {
	if r != nil {
		defaults.Set(&r.APIVersion, "v1")
	}
}
