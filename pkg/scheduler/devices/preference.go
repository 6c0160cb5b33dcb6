package devices

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// Prefers reports whether a claim that gets its devices now has alternatives: one node may have a better one than
// another.
func (n *Needs) Prefers() bool {
	return slices.ContainsFunc(n.wanted, func(c *resourcev1.ResourceClaim) bool {
		return slices.ContainsFunc(c.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool {
			return len(r.FirstAvailable) > 0
		})
	})
}

// Preference rates what the claims get on a node, in the order of On: each request with alternatives counts more, the
// earlier the chosen one is in its list.
func (n *Needs) Preference(got []resourcev1.AllocationResult) (sum int64) {
	for i, c := range n.wanted {
		if i >= len(got) {
			break
		}
		for _, r := range c.Spec.Devices.Requests {
			if at := chosenOf(&r, got[i].Devices.Results); at >= 0 {
				sum += int64(resourcev1.FirstAvailableDeviceRequestMaxSize - at)
			}
		}
	}
	return sum
}

// chosenOf is the place of the alternative that a request got, -1 if it has no alternatives. Results name it after its
// request: request/alternative.
func chosenOf(r *resourcev1.DeviceRequest, results []resourcev1.DeviceRequestAllocationResult) int {
	return slices.IndexFunc(r.FirstAvailable, func(sub resourcev1.DeviceSubRequest) bool {
		return slices.ContainsFunc(results, func(d resourcev1.DeviceRequestAllocationResult) bool {
			request, alternative, _ := strings.Cut(d.Request, "/")
			return request == r.Name && alternative == sub.Name
		})
	})
}
