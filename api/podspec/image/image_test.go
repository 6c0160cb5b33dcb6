package image

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPullPolicy(t *testing.T) {
	t.Parallel()
	digest := "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for image, want := range map[string]corev1.PullPolicy{
		"nginx":                        corev1.PullAlways,
		"nginx:latest":                 corev1.PullAlways,
		"nginx:1":                      corev1.PullIfNotPresent,
		"registry:5000/nginx":          corev1.PullAlways,
		"nginx" + digest:               corev1.PullIfNotPresent,
		"nginx:latest" + digest:        corev1.PullAlways,
		"Not An Image":                 corev1.PullIfNotPresent,
		"registry.example/a/b/c:v1.36": corev1.PullIfNotPresent,
	} {
		if got := PullPolicy(image); got != want {
			t.Errorf("%q: got %s, want %s", image, got, want)
		}
	}
}
