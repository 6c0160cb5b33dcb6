package resource

import (
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/api/validate"
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
	if name := c.Spec.ExtendedResourceName; name != nil {
		errs = append(errs, validateExtended(*name, path.Child("extendedResourceName"))...)
	}
	return errs
}

// validateExtended checks the name of a resource that Kubernetes does not know itself.
func validateExtended(name string, path *field.Path) field.ErrorList {
	const own, quota = "kubernetes.io/", "requests."
	var errs field.ErrorList
	switch {
	case !strings.Contains(name, "/"):
		errs = append(errs, field.Invalid(path, name,
			"a name must be a domain-prefixed path, such as 'example.com/my-prop'"))
	case strings.Contains(name, own):
		errs = append(errs, field.Invalid(path, name, fmt.Sprintf("must not have %q domain", own)))
	}
	if strings.HasPrefix(name, quota) {
		errs = append(errs, field.Invalid(path, name, fmt.Sprintf("must not have %q prefix", quota)))
	}
	return append(errs, validate.Invalid(path, name, content.IsLabelKey(quota+name))...)
}
