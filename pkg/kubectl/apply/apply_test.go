package apply

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/write"
	"bonsai/pkg/kubectl/write/writetest"
)

// newCommand is the command with an editor that renames the key a of the data to z.
func newCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	return NewCommand(func(_ context.Context, _ cli.IOStreams, s write.EditSession,
		save func(*unstructured.Unstructured) error) error {
		out := s.Objects[0].DeepCopy()
		if err := unstructured.SetNestedStringMap(out.Object, map[string]string{"z": "1"}, "data"); err != nil {
			return err
		}
		return save(out)
	})(f, streams)
}

const live = "/api/v1/namespaces/default/configmaps/c"

func configMap(data string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":` + data + `}`
}

// TestLife walks one object through create, no change, change and removal; what others added stays.
func TestLife(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t)
	apply := func(data, want string, args ...string) {
		t.Helper()
		got, code := writetest.Run(t, newCommand, s.URL, configMap(data),
			append([]string{"apply", "-f", "-"}, args...)...)
		if got != want || code != 0 {
			t.Errorf("apply %s %v: code %d, got %q, want %q", data, args, code, got, want)
		}
	}
	apply(`{"a":"1"}`, "configmap/c created (dry run)\n", "--dry-run=client")
	apply(`{"a":"1"}`, "configmap/c created\n")
	apply(`{"a":"1"}`, "configmap/c unchanged\n")
	apply(`{"a":"2"}`, "configmap/c configured (dry run)\n", "--dry-run=client")
	apply(`{"a":"2"}`, "configmap/c configured (server dry run)\n", "--dry-run=server")
	apply(`{"a":"2","b":"3"}`, "configmap/c configured\n")
	apply(`{"b":"3"}`, "configmap/c\n", "-o", "name")
	o := s.Object(live)
	if !strings.Contains(o, `"data":{"b":"3"}`) {
		t.Errorf("the object is %s", o)
	}
	if !strings.Contains(o, `{\"apiVersion\":\"v1\",\"data\":{\"b\":\"3\"},\"kind\":\"ConfigMap\",\"metadata\":{\"annotations\":{},\"name\":\"c\",\"namespace\":\"default\"}}\n`) {
		t.Errorf("the annotation is not as upstream writes it: %s", o)
	}
	if got, _ := writetest.Run(t, newCommand, s.URL, "", "apply", "view-last-applied", "cm",
		"c"); !strings.Contains(got, "data:\n  b: \"3\"\n") {
		t.Errorf("view-last-applied: %q", got)
	}
	if got, _ := writetest.Run(t, newCommand, s.URL, configMap(`{"q":"r"}`), "apply", "set-last-applied", "-f",
		"-"); got != "configmap/c configured\n" {
		t.Errorf("set-last-applied: %q", got)
	}
	if got, _ := writetest.Run(t, newCommand, s.URL, "", "apply", "edit-last-applied",
		"cm/c"); got != "configmap/c edited\n" || !strings.Contains(s.Object(live), `\"data\":{\"z\":\"1\"}`) {
		t.Errorf("edit-last-applied: %q, %s", got, s.Object(live))
	}
}

// TestForeign: an object that was made otherwise is patched with a warning and keeps what it had.
func TestForeign(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"x":"y"}}`)
	got, code := writetest.Run(t, newCommand, s.URL, configMap(`{"a":"1"}`), "apply", "-f", "-")
	const want = "configmap/c configured\nWarning: resource configmaps/c is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.\n"
	if got != want || code != 0 {
		t.Errorf("code %d, got %q", code, got)
	}
	if o := s.Object(live); !strings.Contains(o, `"data":{"a":"1","x":"y"}`) {
		t.Errorf("the object is %s", o)
	}
	log := strings.Join(s.Log(), "\n")
	if !strings.Contains(log, "PATCH "+live+"?fieldManager=kubectl-client-side-apply&fieldValidation=Strict") {
		t.Errorf("requests:\n%s", log)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(file, []byte(configMap(`{}`)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, in, want string }{
		{"", "", "error: must specify one of -f and -k\n"},
		{"x", "", "error: Unexpected args: [x]\nSee 'kubectl apply -h' for help and examples\n"},
		{"-f -", "", "error: no objects passed to apply\n"},
		{"-f - --server-side --force", "", "error: --force cannot be used with --server-side\n"},
		{"-f - --server-side --prune --all", "",
			"error: --prune is in alpha and doesn't currently work on objects created by server-side apply\n"},
		{"-f - --server-side", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"}}`,
			"error: from a-: cannot use generate name with apply\n"},
		{"-f - --force-conflicts", "", "error: --force-conflicts only works with --server-side\n"},
		{"-f - --server-side --dry-run=client", "",
			"error: --dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)\n"},
		{"-f - --validate=foo", "",
			"error: invalid - validate option \"foo\"; must be one of: strict (or true), warn, ignore (or false)\n"},
		{"-f -", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"}}`,
			"error: from a-: cannot use generate name with apply\n"},
		{"-f " + file + " -f /nope", "", "error: the path \"/nope\" does not exist\n"},
	} {
		s := writetest.NewServer(t)
		got, code := writetest.Run(t, newCommand, s.URL, c.in, append([]string{"apply"}, strings.Fields(c.args)...)...)
		if got != c.want || code != 1 {
			t.Errorf("apply %s: code %d\n got %q\nwant %q", c.args, code, got, c.want)
		}
		if len(s.Log()) > 0 {
			t.Errorf("apply %s: requests %q", c.args, s.Log())
		}
	}
}
