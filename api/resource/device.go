package resource

import (
	"maps"
	"slices"

	"github.com/blang/semver/v4"
	resourcev1 "k8s.io/api/resource/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

func validateSliceDevices(list []resourcev1.Device, path *field.Path) field.ErrorList {
	most := resourcev1.ResourceSliceMaxDevices
	if slices.ContainsFunc(list, func(d resourcev1.Device) bool { return len(d.Taints) > 0 || len(d.ConsumesCounters) > 0 }) {
		most = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
	}
	errs := bound(path, len(list), most)
	seen := sets.New[string]()
	for i := range list[:min(len(list), most)] {
		errs = append(errs, validateDevice(&list[i], path.Index(i))...)
		if seen.Has(list[i].Name) {
			errs = append(errs, field.Duplicate(path.Index(i), list[i].Name))
		}
		seen.Insert(list[i].Name)
	}
	return errs
}

func validateDevice(d *resourcev1.Device, path *field.Path) field.ErrorList {
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
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		errs = append(errs, validateQualifiedName(string(name), path.Child("capacity"))...)
	}
	errs = append(errs, bound(path.Child("taints"), len(d.Taints), resourcev1.DeviceTaintsMaxLength)...)
	for i, t := range d.Taints[:min(len(d.Taints), resourcev1.DeviceTaintsMaxLength)] {
		taint := path.Child("taints").Index(i)
		errs = append(errs, metavalidation.ValidateLabelName(t.Key, taint.Child("key"))...)
		errs = append(errs, validate.Invalid(taint.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
		errs = append(errs, validateEffect(t.Effect, taint.Child("effect"))...)
	}
	return errs
}

// attribute is one as upstream's messages show it, without the names of JSON.
type attribute struct {
	IntValue      *int64
	BoolValue     *bool
	StringValue   *string
	VersionValue  *string
	IntValues     []int64
	BoolValues    []bool
	StringValues  []string
	VersionValues []string
}

func validateAttribute(a *resourcev1.DeviceAttribute, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	n := 0
	for _, set := range []bool{a.IntValue != nil, a.BoolValue != nil, a.StringValue != nil, a.VersionValue != nil} {
		if set {
			n++
		}
	}
	if s := a.StringValue; s != nil && len(*s) > resourcev1.DeviceAttributeMaxValueLength {
		errs = append(errs, field.TooLong(path.Child("string"), "", resourcev1.DeviceAttributeMaxValueLength))
	}
	if v := a.VersionValue; v != nil {
		if _, err := semver.Parse(*v); err != nil {
			errs = append(errs, field.Invalid(path.Child("version"), *v, "must be a string compatible with semver.org spec 2.0.0"))
		}
		if len(*v) > resourcev1.DeviceAttributeMaxValueLength {
			errs = append(errs, field.TooLong(path.Child("version"), "", resourcev1.DeviceAttributeMaxValueLength))
		}
	}
	switch n {
	case 0:
		return append(errs, field.Invalid(path, "", "exactly one value must be specified"))
	case 1:
		return errs
	}
	return append(errs, field.Invalid(path, attribute{IntValue: a.IntValue, BoolValue: a.BoolValue, StringValue: a.StringValue, VersionValue: a.VersionValue}, "exactly one value must be specified"))
}
