package resource

import (
	resourcev1 "k8s.io/api/resource/v1"
)

// Taints reports whether a rule puts its taint on a device: one without a selector is on none, and one whose selector
// is empty is on all.
func Taints(r *resourcev1.DeviceTaintRule, driver, pool, device string) bool {
	s := r.Spec.DeviceSelector
	return s != nil && matches(s.Driver, driver) && matches(s.Pool, pool) && matches(s.Device, device)
}

func matches(want *string, has string) bool { return want == nil || *want == has }

// Tainted returns a slice with the taints that rules put on its devices, after the devices' own. It shares what does
// not change with s, and is s if nothing does.
func Tainted(s *resourcev1.ResourceSlice, rules []*resourcev1.DeviceTaintRule) *resourcev1.ResourceSlice {
	out := s
	for i := range s.Spec.Devices {
		var more []resourcev1.DeviceTaint
		for _, r := range rules {
			if Taints(r, s.Spec.Driver, s.Spec.Pool.Name, s.Spec.Devices[i].Name) {
				more = append(more, r.Spec.Taint)
			}
		}
		if more == nil {
			continue
		}
		if out == s {
			changed := *s
			changed.Spec.Devices = append([]resourcev1.Device(nil), s.Spec.Devices...)
			out = &changed
		}
		d := &out.Spec.Devices[i]
		d.Taints = append(append([]resourcev1.DeviceTaint(nil), d.Taints...), more...)
	}
	return out
}
