package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"

	"bonsai/api/quantity"
	"bonsai/api/validate"
)

// validateRequirements checks a container's requests and limits: known names, sound quantities, requests within limits.
func validateRequirements(r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	limPath, reqPath := path.Child("limits"), path.Child("requests")
	cpuOrMemory, huge := false, false
	note := func(name corev1.ResourceName) {
		cpuOrMemory = cpuOrMemory || name == corev1.ResourceCPU || name == corev1.ResourceMemory
		huge = huge || quantity.IsHugePage(name)
	}
	for _, name := range quantity.Names(r.Limits) {
		q := r.Limits[name]
		errs = append(errs, ValidateContainerResourceName(name, limPath.Key(string(name)))...)
		errs = append(errs, quantity.Validate(name, q, limPath.Key(string(name)))...)
		errs = append(errs, wholePages(name, q, limPath.Key(string(name)))...)
		note(name)
	}
	for _, name := range quantity.Names(r.Requests) {
		q := r.Requests[name]
		errs = append(errs, ValidateContainerResourceName(name, reqPath.Key(string(name)))...)
		errs = append(errs, quantity.Validate(name, q, reqPath.Key(string(name)))...)
		errs = append(errs, wholePages(name, q, reqPath.Key(string(name)))...)
		note(name)
		errs = append(errs, withinLimit(name, q, r.Limits, limPath, reqPath)...)
	}
	if huge && !cpuOrMemory {
		errs = append(errs, field.Forbidden(path, "HugePages require cpu or memory"))
	}
	return errs
}

// wholePages: huge pages come whole.
func wholePages(name corev1.ResourceName, q resource.Quantity, path *field.Path) field.ErrorList {
	text, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
	if !ok {
		return nil
	}
	page, err := resource.ParseQuantity(text)
	if err == nil && page.Sign() > 0 && q.Value()%page.Value() == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, q.String(),
		fmt.Sprintf("%s is not positive integer multiple of %s", q.String(), name))}
}

// validateClaims checks that claims are named once each, and are the pod's.
func validateClaims(claims []corev1.ResourceClaim, pod []corev1.PodResourceClaim, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	known, seen := sets.New[string](), sets.New[string]()
	for _, c := range pod {
		known.Insert(c.Name)
	}
	for i, c := range claims {
		at := path.Index(i)
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
		case !known.Has(c.Name):
			err := field.NotFound(at, c.Name)
			err.Detail = "must be one of the names in pod.spec.resourceClaims"
			if len(known) == 0 {
				err.Detail += " which is empty"
			}
			errs = append(errs, err)
		}
		if seen.Has(c.Name) {
			errs = append(errs, field.Duplicate(at, c.Name))
		}
		seen.Insert(c.Name)
	}
	return errs
}

// withinLimit: a request may not be above its limit; what cannot be overcommitted must equal it.
func withinLimit(name corev1.ResourceName, request resource.Quantity, limits corev1.ResourceList, limPath,
	reqPath *field.Path) field.ErrorList {
	limit, ok := limits[name]
	overcommit := quantity.IsNative(name) && !quantity.IsHugePage(name)
	switch {
	case !ok && !overcommit:
		return field.ErrorList{field.Required(limPath, "Limit must be set for non overcommitable resources")}
	case !ok:
		return nil
	case request.Cmp(limit) != 0 && !overcommit:
		return field.ErrorList{field.Invalid(reqPath, request.String(),
			fmt.Sprintf("must be equal to %s limit of %s", name, limit.String()))}
	case request.Cmp(limit) > 0:
		return field.ErrorList{field.Invalid(reqPath, request.String(),
			fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String()))}
	}
	return nil
}

// ValidateContainerResourceName: an unqualified name must be one that containers know.
func ValidateContainerResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := quantity.ValidateName(name, path)
	switch s := string(name); {
	case !strings.Contains(s, "/"):
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage &&
			!quantity.IsHugePage(name) {
			errs = append(errs, field.Invalid(path, name, "must be a standard resource for containers"))
		}
	case !quantity.IsNative(name) && !quantity.IsExtended(name):
		errs = append(errs, field.Invalid(path, name, "doesn't follow extended resource name standard"))
	}
	return errs
}

// validatePodResources checks pod-level requests and limits: only some resources, and room for all containers.
func validatePodResources(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	r := s.Resources
	if r == nil {
		return nil
	}
	var errs, tooHigh field.ErrorList
	if len(r.Claims) > 0 {
		errs = append(errs, field.Forbidden(path.Child("claims"), "claims may not be set for Resources at pod-level"))
		errs = append(errs, validateClaims(r.Claims, s.ResourceClaims, path.Child("claims"))...)
	}
	for _, name := range quantity.Names(r.Limits) {
		errs = append(errs, validatePodResource(name, r.Limits[name], path.Child("limits"))...)
	}
	for i := range s.Containers {
		own := s.Containers[i].Resources.Limits
		for _, name := range quantity.Names(own) {
			limit, ok := r.Limits[name]
			if q := own[name]; ok && q.Cmp(limit) > 0 {
				at := path.Child("containers").Index(i).Key(string(name)).Child("limits")
				tooHigh = append(tooHigh,
					field.Invalid(at, q.String(),
						fmt.Sprintf("must be less than or equal to pod limits of %s", limit.String())))
			}
		}
	}
	sum := resourcehelper.AggregateContainerRequests(&corev1.Pod{Spec: *s}, resourcehelper.PodResourcesOptions{})
	for _, name := range quantity.Names(r.Requests) {
		q := r.Requests[name]
		errs = append(errs, validatePodResource(name, q, path.Child("requests"))...)
		errs = append(errs, withinLimit(name, q, r.Limits, path.Child("limits"), path.Child("requests"))...)
		if total, ok := sum[name]; ok && total.Cmp(q) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests").Key(string(name)), q.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", total.String())))
		}
	}
	if needsMore(r) {
		errs = append(errs, field.Forbidden(path, "HugePages require cpu or memory"))
	}
	return append(errs, tooHigh...)
}

// needsMore reports whether there are huge pages, and neither CPU nor memory.
func needsMore(r *corev1.ResourceRequirements) bool {
	huge := false
	for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
		for name := range list {
			if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
				return false
			}
			huge = huge || quantity.IsHugePage(name)
		}
	}
	return huge
}

func validatePodResource(name corev1.ResourceName, q resource.Quantity, path *field.Path) field.ErrorList {
	if errs := quantity.ValidateName(name, path.Key(string(name))); len(errs) > 0 {
		return errs
	}
	if !resourcehelper.IsSupportedPodLevelResource(name) {
		return field.ErrorList{field.NotSupported(path.Key(string(name)), name,
			sets.List(resourcehelper.SupportedPodLevelResources()))}
	}
	return quantity.Validate(name, q, path.Key(string(name)))
}

// validateResizePolicy checks what a resize of each resource does to the container.
func validateResizePolicy(policies []corev1.ContainerResizePolicy, pod corev1.RestartPolicy,
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[corev1.ResourceName]()
	for i, p := range policies {
		at := path.Index(i)
		if seen.Has(p.ResourceName) {
			errs = append(errs, field.Duplicate(at, p.ResourceName))
		}
		seen.Insert(p.ResourceName)
		errs = append(errs, validate.OneOf(path, p.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)...)
		errs = append(errs, validate.OneOf(path, p.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)...)
		if pod == corev1.RestartPolicyNever && p.RestartPolicy != corev1.NotRequired {
			errs = append(errs, field.Invalid(path, p.RestartPolicy,
				"must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
		}
	}
	return errs
}

// validateInitResizePolicy: an init container that ends by itself is never restarted for its new resources.
func validateInitResizePolicy(policies []corev1.ContainerResizePolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, p := range policies {
		if p.RestartPolicy == corev1.RestartContainer {
			errs = append(errs, field.Invalid(path.Index(i).Child("restartPolicy"), p.RestartPolicy,
				"must not be set to 'RestartContainer' for non-sidecar initContainers"))
		}
	}
	return errs
}
