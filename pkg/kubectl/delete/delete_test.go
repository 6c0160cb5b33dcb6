package delete

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

func TestDelete(t *testing.T) {
	t.Parallel()
	const forced = "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.\n"
	for _, c := range []struct {
		args, want string
		code       int
		// body is what the first DELETE carries, "" if there is none.
		body string
	}{
		{"cm a", "configmap \"a\" deleted from default namespace\n", 0,
			`{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`},
		{"cm a --cascade=orphan -o name", "configmap/a\n", 0, `"propagationPolicy":"Orphan"`},
		{"cm a --force", "configmap \"a\" force deleted from default namespace\n" + forced, 0,
			`"gracePeriodSeconds":0`},
		{"cm a --now", "configmap \"a\" deleted from default namespace\n", 0, `"gracePeriodSeconds":1`},
		{"cm a --grace-period=0", "configmap \"a\" deleted from default namespace\n", 0, `"gracePeriodSeconds":1`},
		{"node n", "node \"n\" deleted\n", 0, "{"},
		{"node n -n default", "node \"n\" deleted\nWarning: deleting cluster-scoped resources, not scoped to the provided namespace\n", 0, "{"},
		{"cm a --cascade=true", "configmap \"a\" deleted from default namespace\nwarning: --cascade=true is deprecated (boolean value) and can be replaced with --cascade=background.\n", 0, `"propagationPolicy":"Background"`},
		{"cm --all", "configmap \"a\" deleted from default namespace\n", 0, "{"},
		{"pods --all", "No resources found\n", 0, ""},
		{"cm a nope", "configmap \"a\" deleted from default namespace\nError from server (NotFound): configmaps \"nope\" not found\n", 1, "{"},
		{"cm nope --ignore-not-found", "", 0, "{"},
		{"cm a --dry-run=client", "configmap \"a\" deleted from default namespace (dry run)\n", 0, ""},
		{"cm a --dry-run=server", "configmap \"a\" deleted from default namespace (server dry run)\n", 0,
			`"dryRun":["All"]`},
		{"cm", "error: resource(s) were provided, but no name was specified\n", 1, ""},
		{"cm a --all", "error: name cannot be provided when a selector is specified\n", 1, ""},
		{"cm --all -l a=b", "error: setting 'all' parameter but found a non empty selector. \n", 1, ""},
		{"cm a --now --grace-period=4", "error: --now and --grace-period cannot be specified together\n", 1, ""},
		{"cm a --force --grace-period=4",
			"error: --force and --grace-period greater than 0 cannot be specified together\n", 1, ""},
		{"cm a --cascade=foo", "error: invalid cascade value (foo). Must be \"background\", \"foreground\", or \"orphan\"\n", 1, ""},
		{"cm a -o yaml", "error: unexpected -o output mode: yaml. We only support '-o name'\n", 1, ""},
		{"foo x", "error: the server doesn't have a resource type \"foo\"\n", 1, ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			s := writetest.NewServer(t,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}`,
				`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`)
			got, code := writetest.Run(t, NewCommand, s.URL, "",
				append([]string{"delete"}, strings.Fields(c.args)...)...)
			if got != c.want || code != c.code {
				t.Errorf("code %d\n got %q\nwant %q", code, got, c.want)
			}
			body := ""
			for _, l := range s.Log() {
				if verb, rest, _ := strings.Cut(l, " "); verb == "DELETE" && body == "" {
					_, body, _ = strings.Cut(rest, " ")
				}
			}
			if (body == "") != (c.body == "") || !strings.Contains(body, c.body) {
				t.Errorf("DELETE carries %q, want %q", body, c.body)
			}
		})
	}
}

func TestInteractive(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}`)
	if got, _ := writetest.Run(t, NewCommand, s.URL, "n\n", "delete", "cm", "a",
		"-i"); !strings.HasSuffix(got, "deletion is cancelled\n") ||
		s.Object("/api/v1/namespaces/default/configmaps/a") == "" {
		t.Errorf("n: got %q", got)
	}
	if got, _ := writetest.Run(t, NewCommand, s.URL, "y\n", "delete", "cm", "a",
		"-i"); !strings.HasSuffix(got, "deleted from default namespace\n") {
		t.Errorf("y: got %q", got)
	}
}
