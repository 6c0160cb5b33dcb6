package auth

import (
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// TestReconcile: what a role of the file lacks on the server is added, what it has more is removed if asked, and
// objects of other groups are left out.
func TestReconcile(t *testing.T) {
	t.Parallel()
	const (
		held  = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}]}`
		file  = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get","watch"]}]}`
		other = "\n---\n" + `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`
		added = "\treconciliation required update\n\tmissing rules added:\n\t\t{Verbs:[watch] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}\n"
		done  = "clusterrole.rbac.authorization.k8s.io/r reconciled"
	)
	for _, c := range []struct {
		flag, want string
		code       int
	}{
		{"--dry-run=none", done + "\n" + added, 0},
		{"--dry-run=client", done + " (dry run)\n" + added, 0},
		{"--remove-extra-permissions",
			done + "\n" + added + "\textra rules removed:\n\t\t{Verbs:[list] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}\n", 0},
		{"--dry-run=server", "error: --dry-run=server for command reconcile is not supported yet\n", 1},
	} {
		s := writetest.NewServer(t, held)
		got, code := writetest.Run(t, NewCommand, s.URL, file+other, "auth", "reconcile", "-f", "-", c.flag)
		if got != c.want || code != c.code {
			t.Errorf("%s: code %d\n got %q\nwant %q", c.flag, code, got, c.want)
		}
	}
}
