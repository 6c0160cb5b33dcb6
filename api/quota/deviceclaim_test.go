package quota

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// TestDevices: what kube-apiserver 1.36.3 says is requested by the same claims.
func TestDevices(t *testing.T) {
	t.Parallel()
	const all = resourcev1.DeviceAllocationModeAll
	exactly := func(class string, mode resourcev1.DeviceAllocationMode, n int64) resourcev1.DeviceRequest {
		return resourcev1.DeviceRequest{
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: mode, Count: n}}
	}
	first := func(list ...resourcev1.DeviceSubRequest) resourcev1.DeviceRequest {
		return resourcev1.DeviceRequest{FirstAvailable: list}
	}
	sub := func(class string, mode resourcev1.DeviceAllocationMode, n int64) resourcev1.DeviceSubRequest {
		return resourcev1.DeviceSubRequest{DeviceClassName: class, AllocationMode: mode, Count: n}
	}
	of := func(class, n string) corev1.ResourceList {
		return list(class+".deviceclass.resource.k8s.io/devices", n,
			"requests.deviceclass.resource.kubernetes.io/"+class, n)
	}
	for name, c := range map[string]struct {
		requests []resourcev1.DeviceRequest
		want     corev1.ResourceList
	}{
		"some": {[]resourcev1.DeviceRequest{exactly("gpu", "ExactCount", 3)}, of("gpu", "3")},
		"all":  {[]resourcev1.DeviceRequest{exactly("gpu", all, 0)}, of("gpu", "32")},
		"two classes": {[]resourcev1.DeviceRequest{exactly("gpu", "ExactCount", 3), exactly("gpu", "ExactCount", 1),
			exactly("nic", "ExactCount", 2)}, Add(of("gpu", "4"), of("nic", "2"))},
		"alternatives": {[]resourcev1.DeviceRequest{
			first(sub("gpu", "ExactCount", 3), sub("gpu", "ExactCount", 5), sub("nic", "ExactCount", 2))},
			Add(of("gpu", "5"), of("nic", "2"))},
		"both": {[]resourcev1.DeviceRequest{first(sub("gpu", "ExactCount", 3), sub("nic", all, 0)),
			exactly("gpu", "ExactCount", 1)}, Add(of("gpu", "4"), of("nic", "32"))},
		"none": {nil, nil},
	} {
		claim := &resourcev1.ResourceClaim{
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: c.requests}}}
		want := Add(c.want, list("count/resourceclaims.resource.k8s.io", "1"))
		if got := Usage(resourcev1.Resource("resourceclaims"), claim, time.Time{}, Known{}); !Equal(got, want) {
			t.Errorf("%s: got %s, want %s", name, Text(got), Text(want))
		}
	}
	claims := resourcev1.Resource("resourceclaims")
	for name, want := range map[corev1.ResourceName][]schema.GroupResource{
		"gpu.deviceclass.resource.k8s.io/devices":         {claims},
		"requests.deviceclass.resource.kubernetes.io/gpu": {corev1.Resource("pods"), claims},
		"requests.example.com/gpu":                        {corev1.Resource("pods"), claims},
		"count/resourceclaims.resource.k8s.io":            {claims},
		".deviceclass.resource.k8s.io/devices":            nil,
	} {
		if got := Counted(name); !slices.Equal(got, want) {
			t.Errorf("%s counts %v, want %v", name, got, want)
		}
	}
}

// TestExtendedDevices: what kube-apiserver 1.36.3 counts of claims whose class names an extended resource, and of those
// that the scheduler makes for pods which ask for such resources: what the pod asks for is counted with it, and not
// once more.
func TestExtendedDevices(t *testing.T) {
	t.Parallel()
	const explicit, implicit = "example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"
	requests := []resourcev1.DeviceRequest{
		{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu",
			AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2}}}
	own := &resourcev1.ResourceClaim{
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}}}
	special := own.DeepCopy()
	special.Namespace, special.Annotations = "ns", map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	special.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u", Controller: ptr.To(true)}}
	for _, c := range []struct {
		name               string
		claim              *resourcev1.ResourceClaim
		uid                types.UID
		asks               corev1.ResourceList
		explicit, implicit string
	}{
		{"a user's claim", own, "u", list(explicit, "2"), "2", "2"},
		{"of a pod that asks by the class's resource", special, "u", list(explicit, "2"), "0", "2"},
		{"of a pod that asks by the class's name", special, "u", list(implicit, "2"), "2", "0"},
		{"of a pod that asks by both", special, "u", list(explicit, "1", implicit, "1"), "1", "1"},
		{"of a pod that is gone", special, "another", list(explicit, "2"), "2", "2"},
	} {
		known := Known{
			Extended: func(class string) string { return map[string]string{"gpu": explicit}[class] },
			Pod: func(namespace, name string) *corev1.Pod {
				if namespace != "ns" || name != "p" {
					return nil
				}
				return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: c.uid},
					Spec: corev1.PodSpec{Containers: []corev1.Container{
						{Resources: corev1.ResourceRequirements{Requests: c.asks}}}}}
			},
		}
		got := Usage(resourcev1.Resource("resourceclaims"), c.claim, time.Time{}, known)
		want := list("count/resourceclaims.resource.k8s.io", "1", "gpu.deviceclass.resource.k8s.io/devices", "2",
			"requests."+explicit, c.explicit, "requests."+implicit, c.implicit)
		if !Equal(got, want) {
			t.Errorf("%s: got %s, want %s", c.name, Text(got), Text(want))
		}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list(implicit, "3")}}}}}
	if got := Usage(corev1.Resource("pods"), pod, time.Time{}, Known{})["requests."+implicit]; got.Value() != 3 {
		t.Errorf("a pod counts %s", got.String())
	}
}
