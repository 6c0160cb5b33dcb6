package quota

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestDevices: what kube-apiserver 1.36.3 says is requested by the same claims.
func TestDevices(t *testing.T) {
	t.Parallel()
	const all = resourcev1.DeviceAllocationModeAll
	exactly := func(class string, mode resourcev1.DeviceAllocationMode, n int64) resourcev1.DeviceRequest {
		return resourcev1.DeviceRequest{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: mode, Count: n}}
	}
	first := func(list ...resourcev1.DeviceSubRequest) resourcev1.DeviceRequest {
		return resourcev1.DeviceRequest{FirstAvailable: list}
	}
	sub := func(class string, mode resourcev1.DeviceAllocationMode, n int64) resourcev1.DeviceSubRequest {
		return resourcev1.DeviceSubRequest{DeviceClassName: class, AllocationMode: mode, Count: n}
	}
	of := func(class, n string) corev1.ResourceList {
		return list(class+".deviceclass.resource.k8s.io/devices", n, "requests.deviceclass.resource.kubernetes.io/"+class, n)
	}
	for name, c := range map[string]struct {
		requests []resourcev1.DeviceRequest
		want     corev1.ResourceList
	}{
		"some":         {[]resourcev1.DeviceRequest{exactly("gpu", "ExactCount", 3)}, of("gpu", "3")},
		"all":          {[]resourcev1.DeviceRequest{exactly("gpu", all, 0)}, of("gpu", "32")},
		"two classes":  {[]resourcev1.DeviceRequest{exactly("gpu", "ExactCount", 3), exactly("gpu", "ExactCount", 1), exactly("nic", "ExactCount", 2)}, Add(of("gpu", "4"), of("nic", "2"))},
		"alternatives": {[]resourcev1.DeviceRequest{first(sub("gpu", "ExactCount", 3), sub("gpu", "ExactCount", 5), sub("nic", "ExactCount", 2))}, Add(of("gpu", "5"), of("nic", "2"))},
		"both":         {[]resourcev1.DeviceRequest{first(sub("gpu", "ExactCount", 3), sub("nic", all, 0)), exactly("gpu", "ExactCount", 1)}, Add(of("gpu", "4"), of("nic", "32"))},
		"none":         {nil, nil},
	} {
		claim := &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: c.requests}}}
		want := Add(c.want, list("count/resourceclaims.resource.k8s.io", "1"))
		if got := Usage(resourcev1.Resource("resourceclaims"), claim, time.Time{}); !Equal(got, want) {
			t.Errorf("%s: got %s, want %s", name, Text(got), Text(want))
		}
	}
	claims := resourcev1.Resource("resourceclaims")
	for name, want := range map[corev1.ResourceName][]schema.GroupResource{
		"gpu.deviceclass.resource.k8s.io/devices":         {claims},
		"requests.deviceclass.resource.kubernetes.io/gpu": {claims},
		"count/resourceclaims.resource.k8s.io":            {claims},
		".deviceclass.resource.k8s.io/devices":            nil,
	} {
		if got := Counted(name); !slices.Equal(got, want) {
			t.Errorf("%s counts %v, want %v", name, got, want)
		}
	}
}
