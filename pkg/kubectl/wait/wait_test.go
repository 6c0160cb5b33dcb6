package wait

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// TestOnce: without a timeout, what is asked for is looked at once.
func TestOnce(t *testing.T) {
	t.Parallel()
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"pod/p --for=condition=Ready", "pod/p condition met\n", 0},
		{"pod/p --for=condition=Odd", "error: condition not met for pods/p\n", 1},
		{"pod/p --for=jsonpath={.status.nope}", "error: condition not met for pods/p\n", 1},
		{"pod/p --for=delete", "error: condition not met for pods/p\n", 1},
		{"pod/gone --for=delete", "", 0},
		{"pod/p --for=create", "pod/p condition met\n", 0},
		{"pod/gone --for=create", "error: timed out waiting for the condition\n", 1},
		{"pod/p pod/gone --for=condition=Odd",
			"condition not met for pods/p\nError from server (NotFound): pods \"gone\" not found\n", 1},
		{"pod --all -n empty --for=condition=Ready", "error: no matching resources found\n", 1},
	} {
		s := writetest.NewServer(t, pod)
		got, code := writetest.Run(t, NewCommand, s.URL, "",
			append([]string{"wait", "--timeout=0"}, strings.Fields(c.args)...)...)
		if got != c.want || code != c.code {
			t.Errorf("wait %s:\n got %d %q\nwant %d %q", c.args, code, got, c.code, c.want)
		}
	}
}

// TestLocal: files are judged as they are, without a server.
func TestLocal(t *testing.T) {
	t.Parallel()
	const file = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"1"}}`
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"-f - --for=jsonpath={.data.a}=1", "configmap/m condition met\n", 0},
		{"-f - --for=jsonpath={.data.a}=2", "error: condition not met for configmaps/m\n", 1},
		{"-f - --for=create", "configmap/m condition met\n", 0},
		{"-f - --for=delete", "error: condition not met for configmaps/m\n", 1},
		{"cm/m --for=create", "error: you must specify resources by --filename when --local is set.\nExample resource specifications include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n", 1},
	} {
		got, code := writetest.Run(t, NewCommand, "http://127.0.0.1:1", file,
			append([]string{"wait", "--local"}, strings.Fields(c.args)...)...)
		if got != c.want || code != c.code {
			t.Errorf("wait --local %s:\n got %d %q\nwant %d %q", c.args, code, got, c.code, c.want)
		}
	}
}
