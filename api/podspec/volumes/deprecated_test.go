package volumes

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestDeprecated(t *testing.T) {
	t.Parallel()
	at := field.NewPath("spec")
	for _, c := range []struct{ got, want []string }{
		{Warnings(&corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, at), nil},
		{Warnings(&corev1.VolumeSource{Quobyte: &corev1.QuobyteVolumeSource{}}, at),
			[]string{"spec.quobyte: deprecated in v1.22, non-functional in v1.25+"}},
		{Warnings(&corev1.VolumeSource{GitRepo: &corev1.GitRepoVolumeSource{}}, at),
			[]string{"spec.gitRepo: deprecated in v1.11, and disabled by default in v1.33+"}},
		{DeprecatedPersistent(&corev1.PersistentVolumeSource{Quobyte: &corev1.QuobyteVolumeSource{}}, at), nil},
		{DeprecatedPersistent(&corev1.PersistentVolumeSource{CephFS: &corev1.CephFSPersistentVolumeSource{}}, at),
			[]string{"spec.cephfs: deprecated in v1.28, non-functional in v1.31+"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
