package datadir

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"bonsai/pkg/cluster/plan"
)

// TestIsLeftover: a directory is deleted without its configuration only if a cluster alone can have written it. A new
// part of plan.Layout must be known here, or `bonsai down` leaves the directory.
func TestIsLeftover(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		want bool
	}{
		"nothing":            {func(*testing.T, string) {}, false},
		"nothing that tells": {func(t *testing.T, dir string) { mkdir(t, dir, "logs", 0o700) }, false},
		"authorities":        {func(t *testing.T, dir string) { mkdir(t, dir, "pki", 0o700) }, true},
		"open to all":        {func(t *testing.T, dir string) { mkdir(t, dir, "pki", 0o755) }, false},
		"nodes are open":     {func(t *testing.T, dir string) { mkdir(t, dir, "nodes", 0o755) }, true},
		"somebody else's, too": {func(t *testing.T, dir string) {
			mkdir(t, dir, "pki", 0o700)
			mkdir(t, dir, "photos", 0o700)
		}, false},
		"a part of the caller": {func(t *testing.T, dir string) {
			mkdir(t, dir, "pki", 0o700)
			mkdir(t, dir, "half", 0o700)
		}, true},
		"all parts": {parts, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.make(t, dir)
			if got := IsLeftover(dir, "half"); got != c.want {
				entries, _ := os.ReadDir(dir)
				t.Errorf("%v: %v, want %v", entries, got, c.want)
			}
		})
	}
	if IsLeftover(filepath.Join(t.TempDir(), "absent")) {
		t.Error("what does not exist is left over")
	}
}

// TestCheckNew: a new cluster takes no directory with anything that its end must not delete.
func TestCheckNew(t *testing.T) {
	t.Parallel()
	file := func(t *testing.T, dir, name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		want string // among the names of the error
	}{
		"nothing":              {func(*testing.T, string) {}, ""},
		"a file":               {func(t *testing.T, dir string) { file(t, dir, "thesis.tex") }, "(thesis.tex)"},
		"a directory":          {func(t *testing.T, dir string) { mkdir(t, dir, "photos", 0o700) }, "(photos)"},
		"open to all":          {func(t *testing.T, dir string) { mkdir(t, dir, "logs", 0o755) }, "(logs)"},
		"nodes are open":       {func(t *testing.T, dir string) { mkdir(t, dir, "nodes", 0o755) }, ""},
		"logs of an earlier":   {func(t *testing.T, dir string) { mkdir(t, dir, "logs", 0o700) }, ""},
		"an interrupted start": {func(t *testing.T, dir string) { file(t, dir, "cluster.json.new") }, ""},
		"a part of the caller": {func(t *testing.T, dir string) { mkdir(t, dir, "half", 0o700) }, ""},
		"all parts":            {parts, ""},
		"somebody else's, too": {func(t *testing.T, dir string) {
			parts(t, dir)
			file(t, dir, "thesis.tex")
		}, "(thesis.tex)"},
		"several": {func(t *testing.T, dir string) {
			file(t, dir, "thesis.tex")
			mkdir(t, dir, "photos", 0o755)
		}, "(photos, …)"},
		"a new file system": {func(t *testing.T, dir string) { mkdir(t, dir, "lost+found", 0o700) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.make(t, dir)
			err := CheckNew(dir, "half")
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if err := CheckNew(filepath.Join(t.TempDir(), "absent")); err != nil {
		t.Error(err)
	}
}

func mkdir(t *testing.T, dir, name string, mode os.FileMode) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, name), mode); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
}

// parts makes all that the methods of plan.Layout name at the top of a data directory.
func parts(t *testing.T, dir string) {
	layout := reflect.ValueOf(plan.Layout(dir))
	for i := range layout.NumMethod() {
		m := layout.Method(i)
		if layout.Type().Method(i).Name == "At" || m.Type().NumOut() != 1 ||
			m.Type().Out(0).Kind() != reflect.String {
			continue
		}
		var args []reflect.Value
		for j := range m.Type().NumIn() - variadic(m) {
			a := reflect.New(m.Type().In(j)).Elem()
			if a.Kind() == reflect.String {
				a.SetString("x")
			}
			args = append(args, a)
		}
		path, err := filepath.Rel(dir, m.Call(args)[0].String())
		if err != nil {
			t.Fatal(err)
		}
		top, _, below := strings.Cut(path, "/")
		if below || !strings.Contains(top, ".") {
			mkdir(t, dir, top, 0o700)
		} else if err := os.WriteFile(filepath.Join(dir, top), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func variadic(f reflect.Value) int {
	if f.Type().IsVariadic() {
		return 1
	}
	return 0
}
