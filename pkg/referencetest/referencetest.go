// Package referencetest keeps the pages of docs/reference as the programs are. A test next to a program takes the
// program's own tables (flag sets, commands, collectors, configuration types), renders them, and calls Check.
package referencetest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the pages of docs/reference that are out of date")

// Updating reports whether the test is to write what it compares with: a test binary can define the flag once only.
func Updating() bool { return *update }

// Check fails the test if docs/reference/name is not text; with -update it writes the page first.
func Check(t *testing.T, name, text string) {
	t.Helper()
	page := filepath.Join(root(t), "docs", "reference", filepath.FromSlash(name))
	want := []byte(strings.TrimRight(text, "\n") + "\n")
	if *update {
		if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/reference/%s is out of date (run make reference, or here: go test -run %s -args -update)%s", name,
			t.Name(), firstChange(got, want))
	}
}

// firstChange shows the first line in which two pages differ.
func firstChange(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("\nline %d:\n- %s\n+ %s", i+1, g[i], w[i])
		}
	}
	return ": one is longer"
}

// root returns the top directory of the module: the nearest one above the working directory that has a go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}

// Table returns a Markdown table, followed by an empty line; "" without rows. Cells are made safe: a line break or a
// vertical bar would end a row or a cell.
func Table(heads []string, rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	write := func(cells []string) {
		b.WriteByte('|')
		for _, c := range cells {
			fmt.Fprintf(&b, " %s |", cell.Replace(strings.TrimSpace(c)))
		}
		b.WriteByte('\n')
	}
	write(heads)
	b.WriteString(strings.Repeat("|---", len(heads)) + "|\n")
	for _, r := range rows {
		write(r)
	}
	b.WriteByte('\n')
	return b.String()
}

var cell = strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;")

// Code puts text into backquotes; "" stays "".
func Code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
