package resource

import (
	resourcev1 "k8s.io/api/resource/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/validate"
)

func defaultClaimSpec(s *resourcev1.ResourceClaimSpec) {
	for i := range s.Devices.Requests {
		r := &s.Devices.Requests[i]
		if e := r.Exactly; e != nil {
			defaultMode(&e.AllocationMode, &e.Count)
			defaultTolerations(e.Tolerations)
		}
		for j := range r.FirstAvailable {
			sub := &r.FirstAvailable[j]
			defaultMode(&sub.AllocationMode, &sub.Count)
			defaultTolerations(sub.Tolerations)
		}
	}
}

func defaultMode(mode *resourcev1.DeviceAllocationMode, count *int64) {
	defaults.Set(mode, resourcev1.DeviceAllocationModeExactCount)
	if *mode == resourcev1.DeviceAllocationModeExactCount {
		defaults.Set(count, 1)
	}
}

func defaultTolerations(list []resourcev1.DeviceToleration) {
	for i := range list {
		defaults.Set(&list[i].Operator, resourcev1.DeviceTolerationOpEqual)
	}
}

// validateClaimSpec checks what a claim asks for; stored are expressions that were there before.
func validateClaimSpec(s *resourcev1.ResourceClaimSpec, stored map[string]bool, path *field.Path) field.ErrorList {
	d, at := &s.Devices, path.Child("devices")
	errs := bound(at.Child("requests"), len(d.Requests), resourcev1.DeviceRequestsMaxSize)
	errs = append(errs, bound(at.Child("constraints"), len(d.Constraints), resourcev1.DeviceConstraintsMaxSize)...)
	errs = append(errs, bound(at.Child("config"), len(d.Config), resourcev1.DeviceConfigMaxSize)...)
	if len(errs) > 0 {
		return errs
	}
	seen := sets.New[string]()
	for i := range d.Requests {
		r, request := &d.Requests[i], at.Child("requests").Index(i)
		errs = append(errs, validateRequest(r, stored, request)...)
		if seen.Has(r.Name) {
			errs = append(errs, field.Duplicate(request, r))
		}
		seen.Insert(r.Name)
	}
	names := requestNames(d)
	for i := range d.Constraints {
		errs = append(errs, validateConstraint(&d.Constraints[i], names, at.Child("constraints").Index(i))...)
	}
	for i := range d.Config {
		config := at.Child("config").Index(i)
		errs = append(errs, validateRequestNames(d.Config[i].Requests, names, config.Child("requests"))...)
		errs = append(errs, validateConfiguration(&d.Config[i].DeviceConfiguration, config)...)
	}
	return errs
}

// requestNames are those by which constraints and configurations name requests: "gpu", "gpu/big".
func requestNames(d *resourcev1.DeviceClaim) sets.Set[string] {
	names := sets.New[string]()
	for _, r := range d.Requests {
		names.Insert(r.Name)
		for _, sub := range r.FirstAvailable {
			names.Insert(r.Name + "/" + sub.Name)
		}
	}
	return names
}

func validateRequestNames(list []string, names sets.Set[string], path *field.Path) field.ErrorList {
	errs := bound(path, len(list), resourcev1.DeviceRequestsMaxSize)
	seen := sets.New[string]()
	for i, name := range list[:min(len(list), resourcev1.DeviceRequestsMaxSize)] {
		at := path.Index(i)
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(at, name))
		} else if !names.Has(name) {
			errs = append(errs, field.Invalid(at, name,
				"must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"))
		}
		seen.Insert(name)
	}
	return errs
}

func validateRequest(r *resourcev1.DeviceRequest, stored map[string]bool, path *field.Path) field.ErrorList {
	errs := validate.Invalid(path.Child("name"), r.Name, validation.IsDNS1123Label(r.Name))
	const one = "exactly one of `exactly` or `firstAvailable` is required"
	switch {
	case r.Exactly != nil && len(r.FirstAvailable) > 0:
		return append(errs, field.Invalid(path, nil, one+", but multiple fields are set"))
	case r.Exactly != nil:
		e, at := r.Exactly, path.Child("exactly")
		return append(errs, validateDevices(
			devices{e.DeviceClassName, e.Selectors, e.AllocationMode, e.Count, e.Tolerations}, stored, at)...)
	case len(r.FirstAvailable) == 0:
		return append(errs, field.Required(path, one))
	}
	at := path.Child("firstAvailable")
	errs = append(errs, bound(at, len(r.FirstAvailable), resourcev1.FirstAvailableDeviceRequestMaxSize)...)
	seen := sets.New[string]()
	for i, sub := range r.FirstAvailable[:min(len(r.FirstAvailable), resourcev1.FirstAvailableDeviceRequestMaxSize)] {
		errs = append(errs, validate.Invalid(at.Index(i).Child("name"), sub.Name,
			validation.IsDNS1123Label(sub.Name))...)
		errs = append(errs, validateDevices(
			devices{sub.DeviceClassName, sub.Selectors, sub.AllocationMode, sub.Count, sub.Tolerations}, stored,
			at.Index(i))...)
		if seen.Has(sub.Name) {
			errs = append(errs, field.Duplicate(at.Index(i), sub))
		}
		seen.Insert(sub.Name)
	}
	return errs
}

// devices is what a request and a subrequest have both.
type devices struct {
	class       string
	selectors   []resourcev1.DeviceSelector
	mode        resourcev1.DeviceAllocationMode
	count       int64
	tolerations []resourcev1.DeviceToleration
}

func validateDevices(d devices, stored map[string]bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if class := path.Child("deviceClassName"); d.class == "" {
		errs = append(errs, field.Required(class, ""))
	} else {
		errs = append(errs, validate.Invalid(class, d.class, apivalidation.NameIsDNSSubdomain(d.class, false))...)
	}
	errs = append(errs, validateSelectors(d.selectors, stored, path.Child("selectors"))...)
	switch count := path.Child("count"); d.mode {
	case resourcev1.DeviceAllocationModeAll:
		if d.count != 0 {
			errs = append(errs, field.Invalid(count, d.count,
				"must not be specified when allocationMode is '"+string(d.mode)+"'"))
		}
	case resourcev1.DeviceAllocationModeExactCount:
		if d.count <= 0 {
			errs = append(errs, field.Invalid(count, d.count, "must be greater than zero"))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("allocationMode"), d.mode,
			[]resourcev1.DeviceAllocationMode{resourcev1.DeviceAllocationModeAll,
				resourcev1.DeviceAllocationModeExactCount}))
	}
	errs = append(errs, bound(path.Child("tolerations"), len(d.tolerations), resourcev1.DeviceTolerationsMaxLength)...)
	for i := range d.tolerations[:min(len(d.tolerations), resourcev1.DeviceTolerationsMaxLength)] {
		errs = append(errs, validateToleration(&d.tolerations[i], path.Child("tolerations").Index(i))...)
	}
	return errs
}

func validateToleration(t *resourcev1.DeviceToleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Key != "" {
		errs = append(errs, metavalidation.ValidateLabelName(t.Key, path.Child("key"))...)
	}
	switch t.Operator {
	case resourcev1.DeviceTolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Invalid(path.Child("value"), t.Value, "must be empty for operator `Exists`"))
		}
	case resourcev1.DeviceTolerationOpEqual:
		errs = append(errs, validate.Invalid(path.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
	default:
		errs = append(errs, field.NotSupported(path.Child("operator"), t.Operator,
			[]resourcev1.DeviceTolerationOperator{resourcev1.DeviceTolerationOpEqual,
				resourcev1.DeviceTolerationOpExists}))
	}
	if t.Effect != "" {
		errs = append(errs, validateEffect(t.Effect, path.Child("effect"))...)
	}
	return errs
}

func validateEffect(e resourcev1.DeviceTaintEffect, path *field.Path) field.ErrorList {
	valid := []resourcev1.DeviceTaintEffect{resourcev1.DeviceTaintEffectNoExecute,
		resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNone}
	return validate.OneOf(path, e, valid...)
}

func validateConstraint(c *resourcev1.DeviceConstraint, names sets.Set[string], path *field.Path) field.ErrorList {
	errs := validateRequestNames(c.Requests, names, path.Child("requests"))
	if c.MatchAttribute != nil {
		errs = append(errs, validateFullName(string(*c.MatchAttribute), path.Child("matchAttribute"))...)
	}
	if c.DistinctAttribute != nil {
		errs = append(errs, validateFullName(string(*c.DistinctAttribute), path.Child("distinctAttribute"))...)
	}
	if c.MatchAttribute == nil && c.DistinctAttribute == nil { // both are let through, as upstream lets them
		errs = append(errs, field.Required(path,
			`exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`))
	}
	return errs
}
