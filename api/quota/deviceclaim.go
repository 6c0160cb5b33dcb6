package quota

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

const (
	// deviceSuffix ends the names that count the devices claimed of one device class:
	// gpu.deviceclass.resource.k8s.io/devices.
	deviceSuffix = ".deviceclass.resource.k8s.io/devices"
	// implicitPrefix begins the names of those extended resources that a device class has without saying so, as a quota
	// counts them.
	implicitPrefix = corev1.DefaultResourceRequestsPrefix + resourcev1.ResourceDeviceClassPrefix
)

// Known is what counts depend on beside the object. Counts leave out what it does not know.
type Known struct {
	// Extended returns the extended resource that a device class names, "" if it names none.
	Extended func(class string) string
	// Pod returns a pod, nil if it is not there.
	Pod func(namespace, name string) *corev1.Pod
}

func countsDevices(name corev1.ResourceName) bool {
	if class, ok := strings.CutSuffix(string(name), deviceSuffix); ok {
		return class != ""
	}
	rest, ok := strings.CutPrefix(string(name), requestsPrefix)
	return ok && extended(corev1.ResourceName(rest))
}

// addDevices counts the devices that c asks for, by class: of alternatives the most that one of them asks for, and of
// all devices that there are as many as a claim can have. They count as the class's extended resources, too, except
// what the pod asks for itself for which the scheduler made the claim: that is counted with the pod.
func addDevices(used corev1.ResourceList, c *resourcev1.ResourceClaim, known Known) {
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
	asked := askedByPod(c, known)
	for class, n := range counts {
		used[corev1.ResourceName(class+deviceSuffix)] = number(int(n))
		names := []corev1.ResourceName{corev1.ResourceName(implicitPrefix + class)}
		if known.Extended != nil {
			if name := known.Extended(class); name != "" {
				names = append(names, corev1.ResourceName(requestsPrefix+name))
			}
		}
		for _, name := range names {
			there, by := used[name], asked[name]
			there.Add(number(int(max(0, n-by.Value()))))
			used[name] = there
		}
	}
}

// askedByPod is what the pod asks for, by the names of quotas, for whose extended resources a claim was made.
func askedByPod(c *resourcev1.ResourceClaim, known Known) corev1.ResourceList {
	owner := metav1.GetControllerOf(c)
	if known.Pod == nil || owner == nil || c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
		return nil
	}
	p := known.Pod(c.Namespace, owner.Name)
	if p == nil || p.UID != owner.UID {
		return nil
	}
	out := corev1.ResourceList{}
	addCompute(out, resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true}), nil)
	return out
}

func devices(mode resourcev1.DeviceAllocationMode, count int64) int64 {
	if mode == resourcev1.DeviceAllocationModeAll {
		return resourcev1.AllocationResultsMaxSize
	}
	return count
}
