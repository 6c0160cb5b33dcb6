package podspec

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// errorsOf are errors as texts.
func errorsOf(errs field.ErrorList) (out []string) {
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

// TestNoBlockDevicesWithoutHostUsers: as kube-apiserver 1.36.3 refuses them, of init containers too.
func TestNoBlockDevicesWithoutHostUsers(t *testing.T) {
	t.Parallel()
	device := []corev1.VolumeDevice{{Name: "v", DevicePath: "/dev/x"}}
	s := &corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", VolumeDevices: device}},
		InitContainers: []corev1.Container{{Name: "q", Image: "i", VolumeDevices: device}},
		Volumes: []corev1.Volume{
			{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "x"}}}}}
	Default(s)
	if errs := Validate(s, field.NewPath("spec")); len(errs) > 0 {
		t.Errorf("with users of the host: %v", errs)
	}
	s.HostUsers = new(bool)
	want := []string{"spec.containers[0].volumeDevices: Forbidden: when `hostUsers` is false",
		"spec.initContainers[0].volumeDevices: Forbidden: when `hostUsers` is false"}
	if got := errorsOf(Validate(s, field.NewPath("spec"))); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
