package resource

import (
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

func deviceClassRow() resources.Row {
	return resources.Row{
		GVK: resourcev1.SchemeGroupVersion.WithKind("DeviceClass"), Resource: "deviceclasses", Singular: "deviceclass",
		StoragePath: "deviceclasses",
		New:         resources.Make[resourcev1.DeviceClass],
		Strategy: resources.Typed[*resourcev1.DeviceClass]{
			ReturnDeleted: true,
			Validate:      func(c *resourcev1.DeviceClass) field.ErrorList { return validateDeviceClass(c, nil) },
			ValidateUpdate: func(obj, old *resourcev1.DeviceClass) field.ErrorList {
				return validateDeviceClass(obj, expressions(old.Spec.Selectors))
			},
			SpecChanged: func(obj, old *resourcev1.DeviceClass) bool {
				return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
			},
		}.Strategy(),
		Columns: resources.NameAndAge(),
		Cells:   resources.Cells(resources.NameAndAgeCells[*resourcev1.DeviceClass]),
	}
}

func validateDeviceClass(c *resourcev1.DeviceClass, stored map[string]bool) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateSelectors(c.Spec.Selectors, stored, path.Child("selectors"))
	errs = append(errs, bound(path.Child("config"), len(c.Spec.Config), resourcev1.DeviceConfigMaxSize)...)
	for i := range c.Spec.Config[:min(len(c.Spec.Config), resourcev1.DeviceConfigMaxSize)] {
		errs = append(errs, validateConfiguration(&c.Spec.Config[i].DeviceConfiguration,
			path.Child("config").Index(i))...)
	}
	if name := c.Spec.ExtendedResourceName; name != nil && !isExtended(*name) {
		errs = append(errs, field.Invalid(path.Child("extendedResourceName"), *name,
			"must be a valid extended resource name"))
	}
	return errs
}

// isExtended reports whether a name is that of a resource which Kubernetes does not know itself.
func isExtended(name string) bool {
	domain, _, has := strings.Cut(name, "/")
	if !has || strings.HasSuffix(domain, "kubernetes.io") || strings.HasPrefix(name, "requests.") {
		return false
	}
	return len(validation.IsQualifiedName("requests."+name)) == 0
}
