package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A variable that comes from a file names an emptyDir of its pod, in containers of every kind. The words and their
// order are those of Kubernetes 1.36.3.
func TestFileKeyRefs(t *testing.T) {
	t.Parallel()
	const at = "[0].env[0].valueFrom.fileKeyRef."
	const notLabel = `: a lowercase RFC 1123 label must consist of`
	volumes := func() []corev1.Volume { // defaults are filled into them
		return []corev1.Volume{
			{Name: "dir", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}}},
		}
	}
	for name, c := range map[string]struct {
		volume, path string
		want         []string // each error's beginning, behind the container
	}{
		"an emptyDir":      {"dir", "a/b", nil},
		"an absolute path": {"dir", "/a", nil},
		"a step back":      {"dir", "a/../b", []string{`path: Invalid value: "a/../b": must not contain '..'`}},
		"no path":          {"dir", "", []string{"path: Required value"}},
		"no such volume":   {"nope", "a", []string{`volumeName: Not found: "nope"`}},
		"another kind": {"host", "a",
			[]string{`volumeName: Invalid value: "host": referenced volume must be of type emptyDir`}},
		"no volume": {"", "a", []string{"volumeName: Required value", `volumeName: Not found: ""`}},
		"no name, no volume": {"A b", "",
			[]string{`volumeName: Invalid value: "A b"` + notLabel, "path: Required value",
				`volumeName: Not found: "A b"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			optional := true // which a reference to a volume that is missing is not helped by
			env := []corev1.EnvVar{{Name: "A",
				ValueFrom: &corev1.EnvVarSource{
					FileKeyRef: &corev1.FileKeySelector{VolumeName: c.volume, Path: c.path, Key: "K",
						Optional: &optional}}}}
			for kind, spec := range map[string]corev1.PodSpec{
				"containers": {Containers: []corev1.Container{{Name: "c", Image: "x", Env: env}}},
				"initContainers": {Containers: []corev1.Container{{Name: "c", Image: "x"}},
					InitContainers: []corev1.Container{{Name: "i", Image: "x", Env: env}}},
				"ephemeralContainers": {Containers: []corev1.Container{{Name: "c", Image: "x"}},
					EphemeralContainers: []corev1.EphemeralContainer{
						{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e", Image: "x", Env: env}}}},
			} {
				spec.Volumes = volumes()
				Default(&spec)
				errs := Validate(&spec, field.NewPath("spec"))
				if len(errs) != len(c.want) {
					t.Fatalf("%s: %v; want %q", kind, errs, c.want)
				}
				for i, err := range errs {
					if want := "spec." + kind + at + c.want[i]; !strings.HasPrefix(err.Error(), want) {
						t.Errorf("%s: %v; want %s", kind, err, want)
					}
				}
			}
		})
	}
}
