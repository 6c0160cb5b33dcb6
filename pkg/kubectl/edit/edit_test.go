package edit

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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
		{"renamed", "sed -i s/name:.c/name:\\ d/", "At least one of apiVersion, kind and name was changed",
			`{"x":"y"}`},
		{"broken, then nothing", "f() { test -e " + flag + " || { touch " + flag + "; echo '  - [' >> $1; }; }; f",
			"error: Edit cancelled, no valid changes were saved.\n", `{"x":"y"}`},
		{"broken", "sed -i s/^data:$/data:[/", "error: configmaps \"c\" is invalid\nA copy of your changes",
			`{"x":"y"}`},
		{"no such editor", "no-such-editor -x", "error: unable to launch the editor \"no-such-editor -x\"\n",
			`{"x":"y"}`},
		{"no editor", "false", "error: there was a problem with the editor \"false\"\n", `{"x":"y"}`},
	} {
		t.Setenv("KUBE_EDITOR", c.editor)
		t.Setenv("TMPDIR", t.TempDir())
		s := writetest.NewServer(t,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"x":"y"}}`)
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
		{"such a line alone", `sed -i s/say/tell/`, "configmap/c edited\n",
			`{"script":"#!/bin/sh\n# tell\necho hi\n","x":"y"}`},
		{"a comment alone", `sed -i '1i # mine'`, "Edit cancelled, no changes made.\n",
			`{"script":"` + script + `","x":"y"}`},
		{"after a mistake", `f() { grep -q 'was not valid' $1 && sed -i 's/: \[z$/: z/' $1 || sed -i 's/"y"/[z/' $1; }; f`, "configmap/c edited\n", `{"script":"` + script + `","x":"z"}`},
	} {
		t.Setenv("KUBE_EDITOR", c.editor)
		t.Setenv("TMPDIR", t.TempDir())
		s := writetest.NewServer(t,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"script":"`+
				script+`","x":"y"}}`)
		if got, _ := writetest.Run(t, NewCommand, s.URL, "", "edit", "cm/c"); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if o := s.Object(path); !strings.Contains(o, `"data":`+c.data) {
			t.Errorf("%s: the object is %s", c.name, o)
		}
	}
}

// TestEditRefused: what another edit does not mend does not open the editor again. The file is kept, and what to do
// with it is said.
func TestEditRefused(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	for reason, c := range map[string]struct {
		code int
		want string // but for the file's name
	}{
		"Conflict": {http.StatusConflict,
			"error: configmaps \"c\" could not be patched: no\nYou can run `kubectl replace -f FILE` to try this update again.\n"},
		"Forbidden": {http.StatusForbidden,
			"error: configmaps \"c\" could not be patched: no\nYou can run `kubectl replace -f FILE` to try this update again.\n"},
		"NotFound": {http.StatusNotFound,
			"error: configmaps \"c\" could not be found on the server\nThe edits you made on deleted resources have been saved to \"FILE\"\n"},
	} {
		t.Setenv("KUBE_EDITOR", `f() { echo >> `+ran+`; sed -i 's/"y"/z/' $1; }; f`)
		t.Setenv("TMPDIR", t.TempDir())
		os.Remove(ran)
		s := writetest.NewServer(t,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"x":"y"}}`)
		refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPatch {
				s.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(c.code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, c.code)
		}))
		defer refusing.Close()
		got, code := writetest.Run(t, NewCommand, refusing.URL, "", "edit", "cm/c")
		left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "kubectl-edit-*"))
		if len(left) != 1 {
			t.Fatalf("%s: files left: %v; said %q", reason, left, got)
		}
		if want := strings.Replace(c.want, "FILE", left[0], 1); got != want || code != 1 {
			t.Errorf("%s: code %d, %q, want %q", reason, code, got, want)
		}
		if data, _ := os.ReadFile(ran); len(data) != 1 {
			t.Errorf("%s: the editor ran %d times, want once", reason, len(data))
		}
		if data, _ := os.ReadFile(left[0]); !strings.Contains(string(data), "x: z") {
			t.Errorf("%s: the file lost the edit: %s", reason, data)
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
