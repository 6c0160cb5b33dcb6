package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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

// TestMistakenDeep: a file that nests as deep as a parser lets it is judged as fast as another, to as deep as a
// kubeconfig goes.
func TestMistakenDeep(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config")
	deep := "users:\n- name: u\n  user:\n    token: " + strings.Repeat("\n     {a: ", 3000) + "1" +
		strings.Repeat("}", 3000) + "\n"
	if err := os.WriteFile(file, []byte(deep), 0o600); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if got := mistaken(file); got < 4 || got > 4+maxDepth {
		t.Errorf("line %d", got)
	}
	if took := time.Since(start); took > 20*time.Second { // without a bound it is minutes
		t.Errorf("took %s", took)
	}
}

// TestMistakenPipe: a pipe, as of a shell's <(…), is read once: what it said is gone.
func TestMistakenPipe(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "config")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan int)
	go func() { read <- mistaken(pipe) }()
	select {
	case got := <-read:
		if got != 0 {
			t.Errorf("line %d", got)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for somebody to write")
	}
}
