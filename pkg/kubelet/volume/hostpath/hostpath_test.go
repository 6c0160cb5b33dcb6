package hostpath

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestHostPathTypes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, tc := range []struct {
		path string
		kind corev1.HostPathType
		err  string
	}{
		{"none", "", ""}, {"none", corev1.HostPathDirectory, "is not a directory"},
		{"none", corev1.HostPathFile, "is not a file"}, {"new/dir", corev1.HostPathDirectoryOrCreate, ""},
		{"new/dir", corev1.HostPathDirectory, ""}, {"new/file", corev1.HostPathFileOrCreate, ""},
		{"new/file", corev1.HostPathFile, ""}, {"new/file", corev1.HostPathDirectoryOrCreate, "is not a directory"},
		{"new/dir", corev1.HostPathFileOrCreate, "is not a file"},
		{"absent/file", corev1.HostPathFileOrCreate, "no such file"},
		{"new/file", corev1.HostPathSocket, "is not a socket file"},
		{"/dev/null", corev1.HostPathCharDev, ""}, {"/dev/null", corev1.HostPathBlockDev, "is not a block device"},
		{"new", "Odd", "Odd is an invalid volume type"},
	} {
		p := tc.path
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		err := check(&corev1.HostPathVolumeSource{Path: p, Type: &tc.kind})
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
