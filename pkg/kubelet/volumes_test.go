package kubelet

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/projected"
	"bonsai/pkg/kubelet/volume/volumetest"
)

// volumeContent is what the volumes of TestVolumeSources are filled with.
type volumeContent struct{}

func (volumeContent) ConfigMap(context.Context, string, string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{Data: map[string]string{"k": "v"}}, nil
}

func (volumeContent) Secret(context.Context, string, string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: map[string][]byte{"pw": []byte("hush")}}, nil
}

func (volumeContent) CreateToken(_ context.Context, _, _ string, req *authv1.TokenRequest) (*authv1.TokenRequest, error) {
	req.Status = authv1.TokenRequestStatus{Token: "t", ExpirationTimestamp: metav1.NewTime(time.Unix(0, 0).Add(time.Hour))}
	return req, nil
}

// TestVolumeSources: every kind of volume in the list keeps the contract.
func TestVolumeSources(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: this test mounts file systems, which needs root")
	}
	list := func() []volume.Source {
		c := volumeContent{}
		sources, err := volumeSources(projected.Config{Objects: c, Tokens: c, Now: func() time.Time { return time.Unix(0, 0) }, Log: slog.New(slog.DiscardHandler),
			Field:    func(*corev1.Pod, string) (string, error) { return "f", nil },
			Resource: func(*corev1.Pod, string, *corev1.ResourceFieldSelector) (string, error) { return "r", nil }})
		if err != nil {
			t.Fatal(err)
		}
		return sources
	}
	field := []corev1.DownwardAPIVolumeFile{{Path: "ns", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}
	token := &corev1.ServiceAccountTokenProjection{Path: "token"}
	examples := map[string][]corev1.VolumeSource{
		"empty-dir": {{EmptyDir: &corev1.EmptyDirVolumeSource{}}, {EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		"host-path": {{HostPath: &corev1.HostPathVolumeSource{Path: t.TempDir()}}},
		"image":     {{Image: &corev1.ImageVolumeSource{Reference: "i"}}},
		"configmap": {{ConfigMap: &corev1.ConfigMapVolumeSource{}}}, "secret": {{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}},
		"downward-api": {{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: field}}},
		"projected": {{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: token}, {DownwardAPI: &corev1.DownwardAPIProjection{Items: field}}}}}},
	}
	for i, s := range list() {
		name := s.Name()
		if len(examples[name]) == 0 {
			t.Errorf("no volume of kind %s to test it with", name)
		}
		k := volumetest.Kind{New: func() volume.Source { return list()[i] }}
		for other, vs := range examples {
			if other != name {
				k.Others = append(k.Others, corev1.Volume{Name: other, VolumeSource: vs[0]})
			}
		}
		for _, v := range examples[name] {
			k.Volume = corev1.Volume{Name: "v", VolumeSource: v}
			t.Run(name, func(t *testing.T) { volumetest.Run(t, k) })
		}
	}
}
