package annotate

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"cm c x=y", "configmap/c annotated\n"},
		{"cm c a=b", "configmap/c annotated\n"},
		{"cm c a=c", "error: --overwrite is false but found the following declared annotation(s): 'a' already has a value (b)\n"},
		{"cm c a=c --overwrite", "configmap/c annotated\n"},
		{"cm c a- -o jsonpath={.metadata.annotations}", "{}"},
		{"cm c x=y=z -o jsonpath={.metadata.annotations.x}", "y=z"},
		{"cm c a=b a-", "error: can not both modify and remove the following annotation(s) in the same command: a\n"},
		{"cm c x=y d", "error: all resources must be specified before annotation changes: d\n"},
		{"cm c", "error: at least one annotation update is required\n"},
		{"cm c --list", "a=b\n"},
		{"cm c x=y --dry-run=client", "configmap/c annotated (dry run)\n"},
		{"cm c d x=y --resource-version=1", "error: --resource-version may only be used with a single resource\n"},
	} {
		s := writetest.NewServer(t,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default","labels":{"a":"b"},"annotations":{"a":"b"}}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d","namespace":"default"}}`)
		got, _ := writetest.Run(t, NewCommand, s.URL, "", append([]string{"annotate"}, strings.Fields(c.args)...)...)
		if got != c.want {
			t.Errorf("annotate %s:\n got %q\nwant %q", c.args, got, c.want)
		}
	}
}
