package taint

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

func TestTaint(t *testing.T) {
	t.Parallel()
	const show = " -o jsonpath={.spec.taints}"
	for _, c := range []struct{ args, want string }{
		{"node n k=v:NoExecute", "node/n tainted\n"},
		{"node n k:NoExecute x=1:NoSchedule" + show,
			`[{"effect":"NoExecute","key":"k"},{"effect":"NoSchedule","key":"x","value":"1"},{"effect":"NoSchedule","key":"a","value":"b"}]`},
		{"node n a=c:NoSchedule",
			"error: node n already has a taint(s) with same effect(s) and --overwrite is false\n"},
		{"node n a=c:NoSchedule --overwrite", "node/n modified\n"},
		{"node n a-", "node/n untainted\n"},
		{"node n a:NoSchedule-" + show, ""},
		{"node n a- k=v:NoExecute", "node/n modified\n"},
		{"node n q-", "error: taint \"q\" not found\n"},
		{"node n a:NoExecute-", "error: taint \"a:NoExecute\" not found\n"},
		{"nodes --all k=v:NoExecute --dry-run=client", "node/n tainted\n"},
		{"node n", "error: at least one taint update is required\n"},
		{"node n a=b:Foo", "error: invalid taint effect: Foo, unsupported taint effect\nSee 'kubectl taint -h' for help and examples\n"},
		{"node n a=b:c:NoSchedule",
			"error: invalid taint spec: a=b:c:NoSchedule\nSee 'kubectl taint -h' for help and examples\n"},
		{"node n x=1:NoSchedule x=1:NoSchedule",
			"error: duplicated taints with the same key and effect: {x 1 NoSchedule <nil>}\nSee 'kubectl taint -h' for help and examples\n"},
		{"node n a=b:NoSchedule a:NoSchedule-",
			"error: can not both modify and remove the following taint(s) in the same command: a=NoSchedule\n"},
		{"pods x a=b:NoSchedule", "error: invalid resource type pods, only node types are supported\n"},
		{"foo x a=b:NoSchedule", "the server doesn't have a resource type \"foo\"\n"},
		{"node nope a=b:NoSchedule", "Error from server (NotFound): nodes \"nope\" not found\n"},
	} {
		s := writetest.NewServer(t,
			`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"spec":{"taints":[{"key":"a","value":"b","effect":"NoSchedule"}]}}`)
		got, _ := writetest.Run(t, NewCommand, s.URL, "", append([]string{"taint"}, strings.Fields(c.args)...)...)
		if got != c.want {
			t.Errorf("taint %s:\n got %q\nwant %q", c.args, got, c.want)
		}
	}
}
