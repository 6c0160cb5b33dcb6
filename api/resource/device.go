package resource

import (
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	resourcev1 "k8s.io/api/resource/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec"
	"bonsai/api/validate"
)

// validateSliceDevices checks devices; each names its nodes itself if perDevice.
func validateSliceDevices(list []resourcev1.Device, perDevice bool, path *field.Path) field.ErrorList {
	most := resourcev1.ResourceSliceMaxDevices
	if slices.ContainsFunc(list, func(d resourcev1.Device) bool {
		return len(d.Taints) > 0 || len(d.ConsumesCounters) > 0
	}) {
		most = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
	}
	errs := bound(path, len(list), most)
	seen := sets.New[string]()
	for i := range list[:min(len(list), most)] {
		errs = append(errs, validateDevice(&list[i], perDevice, path.Index(i))...)
		if seen.Has(list[i].Name) {
			errs = append(errs, field.Duplicate(path.Index(i), list[i].Name))
		}
		seen.Insert(list[i].Name)
	}
	return errs
}

func validateDevice(d *resourcev1.Device, perDevice bool, path *field.Path) field.ErrorList {
	errs := validate.Invalid(path.Child("name"), d.Name, validation.IsDNS1123Label(d.Name))
	if n := len(d.Attributes) + len(d.Capacity); n > resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		return append(errs, field.Invalid(path, n, "the total number of attributes and capacities must not exceed 32"))
	}
	at := path.Child("attributes")
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		a := d.Attributes[name]
		errs = append(errs, validateQualifiedName(string(name), at)...)
		errs = append(errs, validateAttribute(&a, at.Key(string(name)))...)
	}
	at = path.Child("capacity")
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		c := d.Capacity[name]
		errs = append(errs, validateQualifiedName(string(name), at)...)
		errs = append(errs, validateRequestPolicy(&c, d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations,
			at.Key(string(name)).Child("requestPolicy"))...)
	}
	errs = append(errs, bound(path.Child("taints"), len(d.Taints), resourcev1.DeviceTaintsMaxLength)...)
	for i := range d.Taints[:min(len(d.Taints), resourcev1.DeviceTaintsMaxLength)] {
		errs = append(errs, validateTaint(&d.Taints[i], path.Child("taints").Index(i))...)
	}
	errs = append(errs, validateConsumption(d.ConsumesCounters, path.Child("consumesCounters"))...)
	errs = append(errs, validateDeviceNodes(d, perDevice, path)...)
	return append(errs, validateBinding(d, path)...)
}

// validateDeviceNodes checks that a device says in one way on which nodes it is, if it is the devices that say it
// (perDevice) and not the slice.
func validateDeviceNodes(d *resourcev1.Device, perDevice bool, path *field.Path) field.ErrorList {
	if !perDevice {
		if d.NodeName != nil || d.NodeSelector != nil || d.AllNodes != nil {
			return field.ErrorList{field.Invalid(path, nil,
				"`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec")}
		}
		return nil
	}
	var errs field.ErrorList
	var set []string
	if n := d.NodeName; n != nil {
		if *n == "" {
			errs = append(errs, field.Invalid(path.Child("nodeName"), *n, "must not be empty"))
		} else {
			set = append(set, "`nodeName`")
			errs = append(errs, validate.Invalid(path.Child("nodeName"), *n,
				apivalidation.NameIsDNSSubdomain(*n, false))...)
		}
	}
	if d.NodeSelector != nil {
		set = append(set, "`nodeSelector`")
		errs = append(errs, podspec.ValidateNodeSelector(d.NodeSelector, path.Child("nodeSelector"))...)
	}
	if d.AllNodes != nil {
		if *d.AllNodes {
			set = append(set, "`allNodes`")
		} else {
			errs = append(errs, field.Invalid(path.Child("allNodes"), false, "must be either unset or set to true"))
		}
	}
	const one = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
	switch len(set) {
	case 0:
		return append(errs, field.Required(path, one))
	case 1:
		return errs
	}
	return append(errs, field.Invalid(path, shown(set), one))
}

func validateAttribute(a *resourcev1.DeviceAttribute, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var set []string
	for _, v := range []struct { // lists are a feature (DRAListTypeAttributes) that is off by default
		name string
		is   bool
	}{{"int", a.IntValue != nil}, {"bool", a.BoolValue != nil}, {"string", a.StringValue != nil},
		{"version", a.VersionValue != nil}} {
		if v.is {
			set = append(set, v.name)
		}
	}
	if s := a.StringValue; s != nil && len(*s) > resourcev1.DeviceAttributeMaxValueLength {
		errs = append(errs, field.TooLong(path.Child("string"), "", resourcev1.DeviceAttributeMaxValueLength))
	}
	if v := a.VersionValue; v != nil {
		if _, err := semver.Parse(*v); err != nil {
			errs = append(errs, field.Invalid(path.Child("version"), *v,
				"must be a string compatible with semver.org spec 2.0.0"))
		}
		if len(*v) > resourcev1.DeviceAttributeMaxValueLength {
			errs = append(errs, field.TooLong(path.Child("version"), "", resourcev1.DeviceAttributeMaxValueLength))
		}
	}
	const all = "of: `int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`"
	switch len(set) {
	case 0:
		return append(errs, field.Invalid(path, "", "must specify one "+all))
	case 1:
		return errs
	}
	return append(errs, field.Invalid(path, "{"+strings.Join(set, ", ")+"}", "must specify exactly one "+all))
}
