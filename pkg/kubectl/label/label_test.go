package label

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"cm c x=y", "configmap/c labeled\n"},
		{"cm c a=b", "configmap/c not labeled\n"},
		{"cm c a=c", "error: 'a' already has a value (b), and --overwrite is false\n"},
		{"cm c a=c --overwrite", "configmap/c labeled\n"},
		{"cm c a-", "configmap/c unlabeled\n"},
		{"cm c q-", "label \"q\" not found.\nconfigmap/c not labeled\n"},
		{"cm c a- x=y", "configmap/c modified\n"},
		{"cm c a=b a-", "error: can not both modify and remove a label in the same command\n"},
		{"cm c x=y d", "error: all resources must be specified before label changes: d\n"},
		{"cm c x=y=z", "error: invalid label spec: x=y=z\n"},
		{"cm c", "error: at least one label update is required\n"},
		{"", "error: one or more resources must be specified as <resource> <name> or <resource>/<name>\n"},
		{"cm c d x=y", "configmap/c labeled\nconfigmap/d labeled\n"},
		{"cm c --list", "a=b\n"},
		{"cm c x=y --dry-run=client", "configmap/c labeled (dry run)\n"},
		{"cm c x=y --dry-run=client -o jsonpath={.metadata.labels}", "{\"a\":\"b\",\"x\":\"y\"}"},
		{"cm c a- -o jsonpath={.metadata.labels}", "{}"},
		{"cm c d x=y --resource-version=1", "error: --resource-version may only be used with a single resource\n"},
	} {
		s := writetest.NewServer(t,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default","labels":{"a":"b"},"annotations":{"a":"b"}}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d","namespace":"default"}}`)
		got, _ := writetest.Run(t, NewCommand, s.URL, "", append([]string{"label"}, strings.Fields(c.args)...)...)
		if got != c.want {
			t.Errorf("label %s:\n got %q\nwant %q", c.args, got, c.want)
		}
	}
}
