package quota

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

const (
	// deviceSuffix ends the names that count the devices claimed of one device class: gpu.deviceclass.resource.k8s.io/devices.
	deviceSuffix = ".deviceclass.resource.k8s.io/devices"
	// implicitPrefix begins the names of those extended resources that a device class has without saying so, as a quota counts them.
	implicitPrefix = corev1.DefaultResourceRequestsPrefix + resourcev1.ResourceDeviceClassPrefix
)

func countsDevices(name corev1.ResourceName) bool {
	if class, ok := strings.CutSuffix(string(name), deviceSuffix); ok {
		return class != ""
	}
	class, ok := strings.CutPrefix(string(name), implicitPrefix)
	return ok && class != ""
}

// addDevices counts the devices that c asks for, by class: of alternatives the most that one of them asks for, and of all devices that
// there are as many as a claim can have.
func addDevices(used corev1.ResourceList, c *resourcev1.ResourceClaim) {
	counts := map[string]int64{}
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		if e := r.Exactly; e != nil {
			counts[e.DeviceClassName] += devices(e.AllocationMode, e.Count)
			continue
		}
		most := map[string]int64{}
		for j := range r.FirstAvailable {
			s := &r.FirstAvailable[j]
			most[s.DeviceClassName] = max(most[s.DeviceClassName], devices(s.AllocationMode, s.Count))
		}
		for class, n := range most {
			counts[class] += n
		}
	}
	for class, n := range counts {
		used[corev1.ResourceName(class+deviceSuffix)] = number(int(n))
		used[corev1.ResourceName(implicitPrefix+class)] = number(int(n))
	}
}

func devices(mode resourcev1.DeviceAllocationMode, count int64) int64 {
	if mode == resourcev1.DeviceAllocationModeAll {
		return resourcev1.AllocationResultsMaxSize
	}
	return count
}
