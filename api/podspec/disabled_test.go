package podspec

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestDropDisabled: fields of features that are off go, but from what has had some.
func TestDropDisabled(t *testing.T) {
	t.Parallel()
	user, file := new(int64(5)), corev1.KeyToPath{Key: "k"}
	with := func() *corev1.PodSpec {
		stop := func() *corev1.Lifecycle { return &corev1.Lifecycle{StopSignal: new(corev1.SIGTERM)} }
		owned := file
		owned.User = user
		s := &corev1.PodSpec{
			SchedulingGroup:    &corev1.PodSchedulingGroup{PodGroupName: new("g")},
			EvictionResponders: []corev1.EvictionResponder{{}},
			InitContainers:     []corev1.Container{{Lifecycle: stop()}},
			Containers: []corev1.Container{{Lifecycle: stop()}, {Lifecycle: stop(),
				VolumeMounts:  []corev1.VolumeMount{{BindMountOptions: []string{"noexec"}}},
				LivenessProbe: probe(&corev1.HTTPGetAction{Protocol: new(corev1.HTTPProtocol("H2C"))}, nil),
				StartupProbe:  probe(nil, &corev1.GRPCAction{Mode: new(corev1.GRPCProbeMode("TLS"))})}},
			Volumes: []corev1.Volume{{},
				{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Mode: new(int32(1))}}},
				{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{DefaultUser: user,
					Items: []corev1.KeyToPath{owned}}}},
				{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{DefaultUser: user,
					Items: []corev1.KeyToPath{owned}}}},
				{VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{DefaultUser: user,
					Items: []corev1.DownwardAPIVolumeFile{{User: user}}}}},
				{VolumeSource: corev1.VolumeSource{
					Projected: &corev1.ProjectedVolumeSource{DefaultUser: user, Sources: []corev1.VolumeProjection{
						{PodCertificate: &corev1.PodCertificateProjection{User: user}},
						{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{User: user}},
						{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{User: user}},
						{Secret: &corev1.SecretProjection{Items: []corev1.KeyToPath{owned}}},
						{ConfigMap: &corev1.ConfigMapProjection{Items: []corev1.KeyToPath{owned}}},
						{DownwardAPI: &corev1.DownwardAPIProjection{
							Items: []corev1.DownwardAPIVolumeFile{{User: user}}}},
					}}}}},
		}
		s.Containers[1].Lifecycle.PreStop = &corev1.LifecycleHandler{
			HTTPGet: &corev1.HTTPGetAction{Protocol: new(corev1.HTTPProtocol("H2C"))}}
		return s
	}
	files := []corev1.KeyToPath{file}
	without := &corev1.PodSpec{
		InitContainers: []corev1.Container{{}},
		Containers: []corev1.Container{{}, {
			Lifecycle:     &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{}}},
			VolumeMounts:  []corev1.VolumeMount{{}},
			LivenessProbe: probe(&corev1.HTTPGetAction{}, nil), StartupProbe: probe(nil, &corev1.GRPCAction{})}},
		Volumes: []corev1.Volume{{},
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{Items: files}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{Items: files}}},
			{VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
				Items: []corev1.DownwardAPIVolumeFile{{}}}}},
			{VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{PodCertificate: &corev1.PodCertificateProjection{}},
					{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}},
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
					{Secret: &corev1.SecretProjection{Items: files}},
					{ConfigMap: &corev1.ConfigMapProjection{Items: files}},
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{}}}},
				}}}}},
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

func probe(get *corev1.HTTPGetAction, grpc *corev1.GRPCAction) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get, GRPC: grpc}}
}
