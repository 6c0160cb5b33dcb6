package executor

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestImageVolumesAreCounted: each image of a container once, however often it is mounted; what became of it is told
// only where the runtime knows.
func TestImageVolumesAreCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails string
		err   error
		want  []string
	}{
		"mounted": {"", nil, []string{"count image volume", "count image volumes 1 true"}},
		"not mounted": {"create", errors.New("no mount"),
			[]string{"count image volume", "count image volumes 1 false"}},
		"another failure":  {"create", errors.New("bad"), []string{"count image volume"}},
		"a bad request":    {"environment", errors.New("no key"), []string{"count image volume"}},
		"its own image":    {"image", errors.New("no such image"), nil},
		"a failing start ": {"start", errors.New("bad"), []string{"count image volume", "count image volumes 1 true"}},
	} {
		e, f, _ := newExecutor(t)
		pod := onePod()
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/data"},
			{Name: "img", MountPath: "/a"}, {Name: "img", MountPath: "/b"}}
		f.fail[c.fails] = c.err
		_ = e.Act(t.Context(), factsOf(pod), NewPod(), startOf(pod)) // why it waits is another test's
		got := slices.DeleteFunc(f.took(), func(n string) bool { return !strings.HasPrefix(n, "count image") })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
