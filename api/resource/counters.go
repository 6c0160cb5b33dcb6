package resource

import (
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// validateSharedCounters checks the sets of counters that the devices of a pool share.
func validateSharedCounters(list []resourcev1.CounterSet, path *field.Path) field.ErrorList {
	errs := bound(path, len(list), resourcev1.ResourceSliceMaxCounterSets)
	if len(errs) > 0 {
		return errs
	}
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.Name
		errs = append(errs, validateSetName(s.Name, path.Index(i).Child("name"))...)
		errs = append(errs, validateCounters(s.Counters, resourcev1.ResourceSliceMaxCountersPerCounterSet,
			path.Index(i).Child("counters"))...)
	}
	return append(errs, duplicates(names, path)...)
}

// validateConsumption checks how much of the counters a device takes.
func validateConsumption(list []resourcev1.DeviceCounterConsumption, path *field.Path) field.ErrorList {
	errs := bound(path, len(list), resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice)
	if len(errs) > 0 {
		return errs
	}
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.CounterSet
		errs = append(errs, validateSetName(c.CounterSet, path.Index(i).Child("counterSet"))...)
		errs = append(errs, validateCounters(c.Counters, resourcev1.ResourceSliceMaxCountersPerDeviceCounterConsumption,
			path.Index(i).Child("counters"))...)
	}
	return append(errs, duplicates(names, path)...)
}

func validateSetName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return validate.Invalid(path, name, validation.IsDNS1123Label(name))
}

// validateCounters checks the names of counters; most is how many there may be.
func validateCounters(counters map[string]resourcev1.Counter, most int, path *field.Path) field.ErrorList {
	if len(counters) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	if errs := bound(path, len(counters), most); len(errs) > 0 {
		return errs
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		errs = append(errs, validate.Invalid(path, name, validation.IsDNS1123Label(name))...)
	}
	return errs
}

// duplicates tells the names that are in a list before, except empty ones, which are wrong already.
func duplicates(names []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New("")
	for i, name := range names {
		if name != "" && seen.Has(name) {
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
		seen.Insert(name)
	}
	return errs
}
