package downward

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateResource checks a reference to a container's own resources; a volume must name the container.
func ValidateResource(r *corev1.ResourceFieldSelector, volume bool, path *field.Path) field.ErrorList {
	if volume && r.ContainerName == "" {
		return field.ErrorList{field.Required(path.Child("containerName"), "")}
	}
	if r.Resource == "" {
		return field.ErrorList{field.Required(path.Child("resource"), "")}
	}
	valid := sets.New("limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
		"requests.ephemeral-storage", "requests.memory")
	if !valid.Has(r.Resource) && !strings.HasPrefix(r.Resource, "limits.hugepages-") &&
		!strings.HasPrefix(r.Resource, "requests.hugepages-") {
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
		return field.ErrorList{field.Invalid(at, r.Resource,
			"only divisor's values 1m and 1 are supported with the cpu resource")}
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
			return field.ErrorList{field.Invalid(at, r.Resource,
				"only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the "+
					what+" resource")}
		}
	}
	return nil
}
