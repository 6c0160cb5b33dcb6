package apply

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// TestPrune: what the selector chooses and client-side apply has written goes, where it is in the file no more; what
// others made stays, and nothing goes where something of the file was refused.
func TestPrune(t *testing.T) {
	t.Parallel()
	object := func(name, annotation string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"default","uid":"` +
			name + `","annotations":{` + annotation + `}}}`
	}
	const kept = `"kubectl.kubernetes.io/last-applied-configuration":"{}"`
	for args, want := range map[string]string{
		"--all --prune-allowlist=core/v1/ConfigMap":                  "configmap/c created\nconfigmap/old pruned\n",
		"--all --prune-allowlist=core/v1/ConfigMap --dry-run=client": "configmap/c created (dry run)\nconfigmap/old pruned (dry run)\n",
		"--all --prune-allowlist=v1/ConfigMap":                       "error: invalid GroupVersionKind format: v1/ConfigMap, please follow <group/version/kind>\n",
	} {
		s := writetest.NewServer(t, object("old", kept), object("made", ""))
		got, _ := writetest.Run(t, newCommand, s.URL, configMap(`{"a":"1"}`),
			append([]string{"apply", "-f", "-", "--prune"}, strings.Fields(args)...)...)
		if got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
		deleted := 0
		for _, line := range s.Log() {
			if strings.HasPrefix(line, "DELETE ") {
				deleted++
			}
		}
		if want := strings.Count(want, "pruned\n"); deleted != want {
			t.Errorf("%s: %d objects are deleted, want %d: %q", args, deleted, want, s.Log())
		}
		if s.Object("/api/v1/namespaces/default/configmaps/made") == "" {
			t.Errorf("%s: what another tool made is gone", args)
		}
	}
}
