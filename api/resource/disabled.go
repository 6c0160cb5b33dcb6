package resource

import (
	resourcev1 "k8s.io/api/resource/v1"
)

// dropDisabledSlice drops the fields of features that are off by default, unless old has a field of that feature; old
// is nil for a new slice.
func dropDisabledSlice(s, old *resourcev1.ResourceSlice) {
	was := &resourcev1.ResourceSliceSpec{}
	if old != nil {
		was = &old.Spec
	}
	has := fieldsOf(was)
	if was.PartitionTypeAttribute == nil { // DRAPartitionableDevicesType
		s.Spec.PartitionTypeAttribute = nil
	}
	if len(was.SkipNodeOperations) == 0 { // DRAOptionalNodeOperations
		s.Spec.SkipNodeOperations = nil
	}
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		if !has.mappings { // DRANodeAllocatableResources
			d.NodeAllocatableResources = nil
		}
		for j := range d.ConsumesCounters {
			if !has.groups { // DRADeviceCompatibilityGroups
				d.ConsumesCounters[j].CompatibilityGroups = nil
			}
		}
		for name, a := range d.Attributes {
			if !has.lists && listed(&a) { // DRAListTypeAttributes
				a.IntValues, a.BoolValues, a.StringValues, a.VersionValues = nil, nil, nil, nil
				d.Attributes[name] = a
			}
		}
	}
}

// disabled tells which fields of features that are off devices have.
type disabled struct{ mappings, groups, lists bool }

func fieldsOf(s *resourcev1.ResourceSliceSpec) (has disabled) {
	for i := range s.Devices {
		d := &s.Devices[i]
		has.mappings = has.mappings || len(d.NodeAllocatableResources) > 0
		for j := range d.ConsumesCounters {
			has.groups = has.groups || len(d.ConsumesCounters[j].CompatibilityGroups) > 0
		}
		for _, a := range d.Attributes {
			has.lists = has.lists || listed(&a)
		}
	}
	return has
}

func listed(a *resourcev1.DeviceAttribute) bool {
	return len(a.IntValues)+len(a.BoolValues)+len(a.StringValues)+len(a.VersionValues) > 0
}

// dropDerived drops attributes that requests derive from others (DRADerivedAttributes).
func dropDerived(s *resourcev1.ResourceClaimSpec) {
	for i := range s.Devices.Requests {
		r := &s.Devices.Requests[i]
		if r.Exactly != nil {
			r.Exactly.DerivedAttributes = nil
		}
		for j := range r.FirstAvailable {
			r.FirstAvailable[j].DerivedAttributes = nil
		}
	}
}

// derives reports whether a request has such attributes.
func derives(s *resourcev1.ResourceClaimSpec) bool {
	for i := range s.Devices.Requests {
		r := &s.Devices.Requests[i]
		if r.Exactly != nil && len(r.Exactly.DerivedAttributes) > 0 {
			return true
		}
		for j := range r.FirstAvailable {
			if len(r.FirstAvailable[j].DerivedAttributes) > 0 {
				return true
			}
		}
	}
	return false
}

// dropSkipped drops what a node need not do for devices (DRAOptionalNodeOperations), unless old has it.
func dropSkipped(s, old *resourcev1.ResourceClaimStatus) {
	if s.Allocation == nil || skips(old) {
		return
	}
	for i := range s.Allocation.Devices.Results {
		s.Allocation.Devices.Results[i].SkipNodeOperations = nil
	}
}

func skips(s *resourcev1.ResourceClaimStatus) bool {
	if s.Allocation == nil {
		return false
	}
	for i := range s.Allocation.Devices.Results {
		if len(s.Allocation.Devices.Results[i].SkipNodeOperations) > 0 {
			return true
		}
	}
	return false
}
