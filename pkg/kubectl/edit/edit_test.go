package edit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

const path = "/api/v1/namespaces/default/configmaps/c"

// TestEdit runs shell commands as the editor. It sets the environment and so cannot run beside others.
func TestEdit(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "tried")
	for _, c := range []struct{ name, editor, want, data string }{
		{"changed", `sed -i 's/"y"/z/'`, "configmap/c edited\n", `{"x":"z"}`},
		{"unchanged", "true", "Edit cancelled, no changes made.\n", `{"x":"y"}`},
		{"emptied", "truncate -s 0", "error: configmaps \"c\" is invalid\nA copy of your changes", `{"x":"y"}`},
		{"renamed", "sed -i s/name:.c/name:\\ d/", "At least one of apiVersion, kind and name was changed", `{"x":"y"}`},
		{"broken, then nothing", "f() { test -e " + flag + " || { touch " + flag + "; echo '  - [' >> $1; }; }; f", "error: Edit cancelled, no valid changes were saved.\n", `{"x":"y"}`},
		{"broken", "sed -i s/^data:$/data:[/", "error: configmaps \"c\" is invalid\nA copy of your changes", `{"x":"y"}`},
		{"no such editor", "no-such-editor -x", "error: unable to launch the editor \"no-such-editor -x\"\n", `{"x":"y"}`},
		{"no editor", "false", "error: there was a problem with the editor \"false\"\n", `{"x":"y"}`},
	} {
		t.Setenv("KUBE_EDITOR", c.editor)
		t.Setenv("TMPDIR", t.TempDir())
		s := writetest.NewServer(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"x":"y"}}`)
		got, _ := writetest.Run(t, NewCommand, s.URL, "", "edit", "cm/c")
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if o := s.Object(path); !strings.Contains(o, `"data":`+c.data) {
			t.Errorf("%s: the object is %s", c.name, o)
		}
		left, _ := os.ReadDir(os.Getenv("TMPDIR"))
		if kept := strings.Contains(got, "A copy of your changes"); kept != (len(left) > 0) {
			t.Errorf("%s: %d files are left, said %q", c.name, len(left), got)
		}
	}
}

// TestEditKeepsText: lines of a text that begin with # are no comments, and what the user does to them is a change.
func TestEditKeepsText(t *testing.T) {
	const script = `#!/bin/sh\n# say\necho hi\n`
	for _, c := range []struct{ name, editor, want, data string }{
		{"another field", `sed -i s/\"y\"/z/`, "configmap/c edited\n", `{"script":"` + script + `","x":"z"}`},
		{"such a line alone", `sed -i s/say/tell/`, "configmap/c edited\n", `{"script":"#!/bin/sh\n# tell\necho hi\n","x":"y"}`},
		{"a comment alone", `sed -i '1i # mine'`, "Edit cancelled, no changes made.\n", `{"script":"` + script + `","x":"y"}`},
		{"after a mistake", `f() { grep -q 'was not valid' $1 && sed -i 's/: \[z$/: z/' $1 || sed -i 's/"y"/[z/' $1; }; f`, "configmap/c edited\n", `{"script":"` + script + `","x":"z"}`},
	} {
		t.Setenv("KUBE_EDITOR", c.editor)
		t.Setenv("TMPDIR", t.TempDir())
		s := writetest.NewServer(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"script":"`+script+`","x":"y"}}`)
		if got, _ := writetest.Run(t, NewCommand, s.URL, "", "edit", "cm/c"); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if o := s.Object(path); !strings.Contains(o, `"data":`+c.data) {
			t.Errorf("%s: the object is %s", c.name, o)
		}
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"# a\na: b\n  # c\n\n", "a: b\n", true},
		{"a: |\n  # b\n", "a: |\n", false},
		{"a: |\n  # b\n", "a: |\n  # b\n", true},
		{"a: |\r\n  # b\r\n", "a: |\n  # b\n", true},
		{"a: [", "# why\n#\na: [\n", true},
		{"a: [", "a: [ ]", false},
	} {
		if got := same([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%q and %q: %t", c.a, c.b, got)
		}
	}
}
