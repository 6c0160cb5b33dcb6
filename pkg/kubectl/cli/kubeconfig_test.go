package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakenLines: the line of what is wrong in a kubeconfig is that of the innermost value.
func TestMistakenLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"apiVersion: v1\nkind: Config\nclusters:\n- name: a\n- name: b\n  cluster:\n    server: [1]\n":                             7,
		"clusters:\n- cluster: {server: x}\n  name: a\nusers:\n- name: u\n  user:\n    exec:\n      command: x\n      args: 3\n":   9,
		"clusters:\n- name: c\n  cluster:\n    certificate-authority-data: YQ==\n- cluster:\n   certificate-authority-data: '%'\n": 6,
		"# first\n\nkind: Config\napiVersion: v2\n": 4,
		"\nkind: Pod\napiVersion: v1\n":             2,
		"apiVersion: v1\nkind: [Config]\n":          2,
		"\n- a\n":                                   2,
		"hello\n":                                   1,
		`{"clusters":[{"name":"c"},` + "\n" + `{"cluster":{"insecure-skip-tls-verify":1}}]}`: 2,
		"apiVersion: v1\nclusters: {\n":  0,
		"apiVersion: v1\nkind: Config\n": 1, // nothing is wrong: only asked of files that are
	} {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := mistaken(file); got != want {
			t.Errorf("%q: line %d, want %d", text, got, want)
		}
	}
	if got := mistaken(filepath.Join(t.TempDir(), "none")); got != 0 {
		t.Errorf("a file that is not there: line %d", got)
	}
}

// TestMistakenAtLast: the line is found among many entries in few steps.
func TestMistakenAtLast(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("users:\n")
	const many = 500
	for i := range many {
		fmt.Fprintf(&b, "- {name: u%d, user: {token: t}}\n", i)
	}
	b.WriteString("- {name: last, user: {token: {}}}\n")
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := mistaken(file); got != many+2 {
		t.Errorf("line %d, want %d", got, many+2)
	}
}
