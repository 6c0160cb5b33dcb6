package core

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// validateExtendedClaim checks which claim a pod's status says was made for its extended resources, and whose its
// requests are.
func validateExtendedClaim(s *corev1.PodExtendedResourceClaimStatus, spec *corev1.PodSpec,
	path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	if len(s.RequestMappings) == 0 {
		errs = append(errs, field.Required(path.Child("requestMappings"), "at least one request mapping is required"))
	}
	seen := sets.New[corev1.ContainerExtendedResourceRequest]()
	for i, m := range s.RequestMappings {
		at := path.Child("requestMappings").Index(i)
		if c := containerNamed(spec, m.ContainerName); c == nil {
			errs = append(errs, field.Invalid(at.Child("containerName"), m.ContainerName,
				"must match the name of an entry in spec.initContainers.name or spec.containers.name"))
		} else if _, asks := c.Resources.Requests[corev1.ResourceName(m.ResourceName)]; !asks ||
			!strings.Contains(m.ResourceName, "/") {
			errs = append(errs, field.Invalid(at.Child("resourceName"), m.ResourceName,
				"must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests"))
		}
		// The path is upstream's: that of the status, not of the mapping.
		errs = append(errs, validate.Invalid(path.Child("requestName"), m.RequestName,
			validation.IsDNS1123Label(m.RequestName))...)
		if seen.Has(m) {
			errs = append(errs, field.Duplicate(at.Child("containerName"), m.ContainerName),
				field.Duplicate(at.Child("resourceName"), m.ResourceName),
				field.Duplicate(at.Child("requestName"), m.RequestName))
		}
		seen.Insert(m)
	}
	if name := path.Child("resourceClaimName"); s.ResourceClaimName == "" {
		errs = append(errs, field.Required(name, ""))
	} else {
		errs = append(errs, validate.Invalid(name, s.ResourceClaimName,
			apivalidation.NameIsDNSSubdomain(s.ResourceClaimName, false))...)
	}
	return errs
}

func containerNamed(spec *corev1.PodSpec, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
