package replace

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

func TestReplace(t *testing.T) {
	t.Parallel()
	const in = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"b"}}`
	for _, c := range []struct{ args, want, request string }{
		{"-f -", "configmap/c replaced\n",
			"PUT /api/v1/namespaces/default/configmaps/c?fieldManager=kubectl-replace&fieldValidation=Strict "},
		{"-f - --dry-run=client", "configmap/c replaced (dry run)\n", ""},
		{"-f - --force", "configmap \"c\" deleted from default namespace\nconfigmap/c replaced\n",
			"POST /api/v1/namespaces/default/configmaps?"},
		{"", "error: must specify one of -f and -k\n", ""},
		{"-f - --force --dry-run=client", "error: --dry-run can not be used when --force is set\n", ""},
		{"-f - --raw=/api/v1/namespaces/default/configmaps/c",
			`{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"c","resourceVersion":"2","uid":"uid-2"}}` + "\n", "PUT /api/v1/namespaces/default/configmaps/c " + in},
		{"-f - --raw=/x --force", "error: --raw and --force are mutually exclusive\n", ""},
		{"-f - -f - --raw=/x", "error: --raw can only use a single local file or stdin\n", ""},
		{"-f - --raw=x", "error: --raw must be a valid URL path: parse \"x\": invalid URI for request\n", ""},
		{"-f - --raw=/x -o yaml", "error: --raw and --output are mutually exclusive\n", ""},
		{"-f - --grace-period=1", "error: --grace-period must have --force specified\n", ""},
	} {
		s := writetest.NewServer(t,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"x":"y"}}`)
		got, _ := writetest.Run(t, NewCommand, s.URL, in, append([]string{"replace"}, strings.Fields(c.args)...)...)
		if got != c.want {
			t.Errorf("replace %s:\n got %q\nwant %q", c.args, got, c.want)
		}
		if log := strings.Join(s.Log(), "\n"); !strings.Contains(log, c.request) {
			t.Errorf("replace %s: requests\n%s", c.args, log)
		}
	}
}
