package podspec

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestSELinuxChangePolicy: what kube-apiserver v1.37.2 takes and how it refuses the rest.
func TestSELinuxChangePolicy(t *testing.T) {
	t.Parallel()
	const at = "spec.securityContext.seLinuxChangePolicy: "
	for _, c := range []struct {
		policy corev1.PodSELinuxChangePolicy
		os     *corev1.PodOS
		want   []string
	}{
		{policy: "MountOption"}, {policy: "Recursive"},
		{policy: "Bogus", want: []string{at + `Unsupported value: "Bogus": supported values: "MountOption", "Recursive"`}},
		{policy: "", want: []string{at + `Unsupported value: "": supported values: "MountOption", "Recursive"`}},
		{policy: "Recursive", os: &corev1.PodOS{Name: corev1.Windows},
			want: []string{at + "Forbidden: cannot be set for a windows pod"}},
	} {
		s := &corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}, OS: c.os,
			SecurityContext: &corev1.PodSecurityContext{SELinuxChangePolicy: &c.policy}}
		Default(s)
		if got := errorsOf(Validate(s, field.NewPath("spec"))); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.policy, got, c.want)
		}
	}
}
