package resource

import (
	"fmt"
	"math"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxValidValues is how many amounts a policy may list.
const maxValidValues = 10

// validateRequestPolicy checks which amounts of a capacity may be asked for. shared tells that the device may be
// allocated several times.
func validateRequestPolicy(c *resourcev1.DeviceCapacity, shared bool, path *field.Path) field.ErrorList {
	p := c.RequestPolicy
	switch {
	case p == nil:
		return nil
	case !shared:
		return field.ErrorList{field.Forbidden(path, "allowMultipleAllocations must be true")}
	case len(p.ValidValues) > 0 && p.ValidRange != nil:
		return field.ErrorList{field.Forbidden(path,
			`exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`)}
	case len(p.ValidValues) > 0:
		return validateValidValues(p.Default, p.ValidValues, c.Value, path)
	case p.ValidRange != nil:
		return validateValidRange(p.Default, p.ValidRange, c.Value, path)
	}
	return nil
}

func validateValidValues(preset *resource.Quantity, values []resource.Quantity, capacity resource.Quantity,
	path *field.Path) field.ErrorList {
	if preset == nil {
		return field.ErrorList{field.Required(path.Child("default"), "required when validValues is defined")}
	}
	at := path.Child("validValues")
	errs := bound(at, len(values), maxValidValues)
	if len(errs) > 0 { // not looked at, so none of them is the default
		values = nil
	}
	has := false
	for i := range values {
		v := &values[i]
		has = has || v.Cmp(*preset) == 0
		if v.Cmp(capacity) > 0 {
			errs = append(errs, field.Invalid(at.Index(i), v.String(),
				"option is larger than capacity value: "+capacity.String()))
		}
	}
	seen := map[string]bool{}
	for i := range values {
		v := &values[i]
		if i > 0 && v.Cmp(values[i-1]) < 0 {
			errs = append(errs, field.Invalid(at.Index(i), v.String(), "values must be sorted in ascending order"))
		}
		if seen[v.String()] {
			errs = append(errs, field.Duplicate(at.Index(i), v.String()))
		}
		seen[v.String()] = true
	}
	if !has {
		errs = append(errs, field.Invalid(at, preset.String(),
			"default value is not valid according to the requestPolicy"))
	}
	return errs
}

func validateValidRange(preset *resource.Quantity, r *resourcev1.CapacityRequestPolicyRange, capacity resource.Quantity,
	path *field.Path) field.ErrorList {
	at := path.Child("validRange")
	switch {
	case preset == nil:
		return field.ErrorList{field.Required(path.Child("default"), "required when validRange is defined")}
	case r.Min == nil:
		return field.ErrorList{field.Required(at.Child("min"), "required when validRange is defined")}
	}
	var errs field.ErrorList
	if preset.Cmp(*r.Min) < 0 {
		errs = append(errs, field.Invalid(at.Child("default"), preset.String(),
			"default is less than min: "+r.Min.String()))
	}
	if r.Min.Cmp(capacity) > 0 {
		errs = append(errs, field.Invalid(at.Child("min"), r.Min.String(),
			"min is larger than capacity value: "+capacity.String()))
	}
	if r.Max != nil {
		if r.Min.Cmp(*r.Max) > 0 {
			errs = append(errs, field.Invalid(at.Child("max"), r.Min.String(),
				"min is larger than max: "+r.Max.String()))
		}
		if preset.Cmp(*r.Max) > 0 {
			errs = append(errs, field.Invalid(at.Child("default"), preset.String(),
				"default is more than max: "+r.Max.String()))
		}
		if r.Max.Cmp(capacity) > 0 {
			errs = append(errs, field.Invalid(at.Child("max"), r.Max.String(),
				"max is larger than capacity value: "+capacity.String()))
		}
	}
	if r.Step != nil {
		errs = append(errs, validateStep(preset, r, capacity, at)...)
	}
	return errs
}

// validateStep checks that the default and the maximum can be reached from the minimum.
func validateStep(preset *resource.Quantity, r *resourcev1.CapacityRequestPolicyRange, capacity resource.Quantity,
	at *field.Path) field.ErrorList {
	path := at.Child("step")
	if r.Step.Sign() <= 0 {
		return field.ErrorList{field.Invalid(path, r.Step.String(), "must be greater than zero")}
	}
	var errs field.ErrorList
	one := r.Min.DeepCopy()
	one.Add(*r.Step)
	if one.Cmp(capacity) > 0 {
		errs = append(errs, field.Invalid(path, r.Step.String(),
			fmt.Sprintf("one step %s is larger than capacity value: %s", one.String(), capacity.String())))
	}
	for _, part := range []struct {
		name  string
		value *resource.Quantity
	}{{"default", preset}, {"min", r.Min}, {"max", r.Max}, {"step", r.Step}} {
		if part.value != nil {
			errs = append(errs, validateWhole(*part.value, at.Child(part.name))...)
		}
	}
	if len(errs) > 0 {
		return errs
	}
	for _, v := range []*resource.Quantity{preset, r.Max} {
		if v == nil {
			continue
		}
		if step := r.Step.Value(); step != 0 && (v.Value()-r.Min.Value())%step != 0 {
			errs = append(errs, field.Invalid(path, v.String(),
				fmt.Sprintf("value is not a multiple of a given step (%s) from (%s)", r.Step.String(), r.Min.String())))
		}
	}
	return errs
}

// validateWhole checks that steps can be counted with an amount.
func validateWhole(v resource.Quantity, path *field.Path) field.ErrorList {
	switch {
	case v.Sign() < 0:
		return field.ErrorList{field.Invalid(path, v.String(), "must be greater than or equal to 0")}
	case v.Cmp(*resource.NewQuantity(math.MaxInt64, resource.DecimalSI)) > 0:
		return field.ErrorList{field.Invalid(path, v.String(),
			fmt.Sprintf("must not be larger than %d", math.MaxInt64))}
	}
	return nil
}
