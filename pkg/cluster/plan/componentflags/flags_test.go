package componentflags

import (
	"slices"
	"testing"
)

// TestAdd: the user's flags come last, and ours go that a component does not take beside them.
func TestAdd(t *testing.T) {
	t.Parallel()
	ours := []string{"/bin/kube-apiserver", "--authorization-mode=Node,RBAC", "--service-account-key-file=sa.pub",
		"--service-account-signing-key-file=sa.key", "--secure-port=6443"}
	for _, c := range []struct {
		flags map[string]string
		want  []string
	}{
		{nil, ours},
		{map[string]string{"v": "2", "secure-port": "1"}, append(slices.Clone(ours), "--secure-port=1", "--v=2")},
		{map[string]string{"authorization-config": "file"}, []string{ours[0], ours[2], ours[3], ours[4],
			"--authorization-config=file"}},
		{map[string]string{"service-account-signing-endpoint": "socket"}, []string{ours[0], ours[1], ours[4],
			"--service-account-signing-endpoint=socket"}},
	} {
		if got := Add(ours, c.flags); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.flags, got, c.want)
		}
	}
}
