package patch

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

func TestPatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"cm", "c", "-p", `{"data":{"a":"b"}}`}, "configmap/c patched\n"},
		{[]string{"cm", "c", "-p", "data: {a: b}", "-o", "jsonpath={.data}"}, `{"a":"b","x":"y"}`},
		{[]string{"cm", "c", "--type=merge", "-p", `{"data":{"x":null}}`, "-o", "jsonpath={.data}", "--dry-run=client"},
			`{}`},
		{[]string{"cm", "c", "--type=json", "-p", `[{"op":"add","path":"/data/z","value":"1"}]`, "-o",
			"jsonpath={.data}", "--dry-run=client"}, `{"x":"y","z":"1"}`},
		{[]string{"cm", "c", "-p", `{"data":{"x":"y"}}`, "--dry-run=client"}, "configmap/c patched (no change)\n"},
		{[]string{"cm", "c"}, "error: must specify --patch or --patch-file containing the contents of the patch\n"},
		{[]string{"cm", "c", "-p", "{}", "--patch-file=x"},
			"error: cannot specify --patch and --patch-file together\n"},
		{[]string{"cm", "c", "-p", "{}", "--type=foo"},
			"error: --type must be one of [json merge strategic], not \"foo\"\n"},
		{[]string{"cm", "c", "--patch-file=/nope"},
			"error: unable to read patch file: open /nope: no such file or directory\n"},
		{[]string{"cm", "nope", "-p", "{}"}, "Error from server (NotFound): configmaps \"nope\" not found\n"},
	} {
		s := writetest.NewServer(t,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"x":"y"}}`)
		if got, _ := writetest.Run(t, NewCommand, s.URL, "", append([]string{"patch"}, c.args...)...); got != c.want {
			t.Errorf("patch %s:\n got %q\nwant %q", strings.Join(c.args, " "), got, c.want)
		}
	}
}
