package podspec

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestDropDisabled: fields of features that are off go, but from what has had some.
func TestDropDisabled(t *testing.T) {
	t.Parallel()
	with := func() *corev1.PodSpec {
		stop := func() *corev1.Lifecycle { return &corev1.Lifecycle{StopSignal: new(corev1.SIGTERM)} }
		s := &corev1.PodSpec{
			SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: new("g")},
			InitContainers:  []corev1.Container{{Lifecycle: stop()}},
			Containers:      []corev1.Container{{Lifecycle: stop()}, {Lifecycle: stop()}},
			Volumes: []corev1.Volume{{},
				{VolumeSource: corev1.VolumeSource{
					Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
						{PodCertificate: &corev1.PodCertificateProjection{}},
						{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}},
					}}}}},
		}
		s.Containers[1].Lifecycle.PreStop = &corev1.LifecycleHandler{}
		return s
	}
	without := &corev1.PodSpec{
		InitContainers: []corev1.Container{{}},
		Containers:     []corev1.Container{{}, {Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{}}}},
		Volumes: []corev1.Volume{{},
			{VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{}, {}}}}}},
	}
	for name, c := range map[string]struct{ old, want *corev1.PodSpec }{
		"a new one":                 {nil, without},
		"one that had none":         {&corev1.PodSpec{}, without},
		"one that had all of these": {with(), with()},
	} {
		got := with()
		DropDisabled(got, c.old)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
