package resource

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateBinding checks the conditions that must be met, or tell of a failure, before a pod is bound to the node of
// its device.
func validateBinding(d *resourcev1.Device, path *field.Path) field.ErrorList {
	met, failed := path.Child("bindingConditions"), path.Child("bindingFailureConditions")
	errs := validateConditionNames(d.BindingConditions, resourcev1.BindingConditionsMaxSize, met)
	errs = append(errs, validateConditionNames(d.BindingFailureConditions, resourcev1.BindingFailureConditionsMaxSize,
		failed)...)
	errs = append(errs, duplicates(d.BindingConditions, met)...)
	for i, c := range d.BindingFailureConditions {
		switch {
		case slices.Contains(d.BindingConditions, c):
			errs = append(errs, field.Invalid(failed.Index(i), c,
				"bindingFailureConditions must not overlap with bindingConditions"))
		case slices.Contains(d.BindingFailureConditions[:i], c):
			errs = append(errs, field.Duplicate(failed.Index(i), c))
		}
	}
	switch {
	case len(d.BindingConditions) > 0 && len(d.BindingFailureConditions) == 0:
		errs = append(errs, field.Invalid(failed, nil,
			"bindingFailureConditions are required to use bindingConditions"))
	case len(d.BindingConditions) == 0 && len(d.BindingFailureConditions) > 0:
		errs = append(errs, field.Invalid(met, nil, "bindingConditions are required to use bindingFailureConditions"))
	}
	return errs
}

func validateConditionNames(list []string, most int, path *field.Path) field.ErrorList {
	errs := bound(path, len(list), most)
	for i, name := range list[:min(len(list), most)] {
		errs = append(errs, metavalidation.ValidateLabelName(name, path.Index(i))...)
	}
	return errs
}
