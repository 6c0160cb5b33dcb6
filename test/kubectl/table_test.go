package kubectl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// table is a list of invocations that are run one after the other in one namespace and one directory.
type table struct {
	name        string
	invocations []invocation
	// files are what the directory holds at first, by name.
	files []txtar.File
}

// invocation is one line of a table: [VARIABLE=value …] kubectl ARGUMENT… [< FILE], or sh ARGUMENT… to look at what
// kubectl left.
type invocation struct {
	// line is as written; it names the invocation in the answers' files.
	line  string
	env   []string
	args  []string
	stdin string
	// shell says that sh is run.
	shell bool
}

// readTables reads testdata/FOLDER/*.txt: archives of txtar whose comment holds the invocations, one a line. Lines that
// begin with # say what is tried.
func readTables(t *testing.T, folder string) []table {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	var out []table
	for _, p := range paths {
		a, err := txtar.ParseFile(p)
		if err != nil {
			t.Fatal(err)
		}
		one := table{name: strings.TrimSuffix(filepath.Base(p), ".txt"), files: a.Files}
		seen := map[string]bool{}
		for line := range strings.Lines(string(a.Comment)) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			v, err := parse(line)
			if err != nil {
				t.Fatalf("%s: %q: %v", p, line, err)
			}
			for n := 2; seen[v.line]; n++ { // asked again later: the answer may be another one
				v.line = fmt.Sprintf("%s #%d", line, n)
			}
			seen[v.line] = true
			one.invocations = append(one.invocations, v)
		}
		out = append(out, one)
	}
	return out
}

// parse reads one line.
func parse(line string) (invocation, error) {
	v := invocation{line: line}
	words, err := split(line)
	if err != nil {
		return v, err
	}
	for len(words) > 0 && words[0] != "kubectl" && words[0] != "sh" {
		v.env, words = append(v.env, words[0]), words[1:]
	}
	if len(words) == 0 {
		return v, fmt.Errorf("no kubectl")
	}
	v.args, v.shell = words[1:], words[0] == "sh"
	if n := len(v.args); n > 1 && v.args[n-2] == "<" {
		v.args, v.stdin = v.args[:n-2], v.args[n-1]
	}
	return v, nil
}

// split takes a line apart at its blanks as a shell does, with single and double quotes. In double quotes \n and \t are
// what they are in Go.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	open, quote := false, rune(0)
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			open, quote = true, c
		case c == ' ':
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			open = true
			word.WriteRune(c)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote is left open")
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}

// answer is what an invocation wrote, normalised, and its exit code.
type answer struct {
	out, errOut string
	code        int
}

func (a answer) String() string {
	var b strings.Builder
	mark := func(prefix, text string) {
		if text == "" {
			return
		}
		for line := range strings.Lines(text) {
			b.WriteString(strings.TrimRight(prefix+line, "\n") + "\n")
		}
		if !strings.HasSuffix(text, "\n") {
			b.WriteString(prefix + "\\ no newline\n")
		}
	}
	mark("  ", a.out)
	mark("! ", a.errOut)
	if a.code != 0 {
		fmt.Fprintf(&b, "= %d\n", a.code)
	}
	return b.String()
}

// A file of answers holds, for each invocation, "$ " and its line, then what was written: each line of the output after
// two blanks, each line of the errors after "! ", and the exit code after "= " unless it is 0. In testdata/ours a line
// "# " and the heading of docs/kubectl.md that explains the difference comes first.

// entry is one invocation's answer in a file.
type entry struct{ reason, text string }

// readAnswers reads a file of answers by the lines of the invocations; a file that is not there has none.
func readAnswers(t *testing.T, path string) map[string]entry {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	out := map[string]entry{}
	line := ""
	for l := range strings.Lines(string(data)) {
		if after, ok := strings.CutPrefix(l, "$ "); ok {
			line = strings.TrimSuffix(after, "\n")
			out[line] = entry{}
			continue
		}
		e := out[line]
		if after, ok := strings.CutPrefix(l, "# "); ok {
			e.reason = strings.TrimSuffix(after, "\n")
		} else {
			e.text += l
		}
		out[line] = e
	}
	return out
}

// writeAnswers writes the entries in the order of the table's invocations; without any, there is no file.
func writeAnswers(t *testing.T, path string, of table, entries map[string]entry) {
	t.Helper()
	var b strings.Builder
	for _, v := range of.invocations {
		e, ok := entries[v.line]
		if !ok {
			continue
		}
		b.WriteString("$ " + v.line + "\n")
		if e.reason != "" {
			b.WriteString("# " + e.reason + "\n")
		}
		b.WriteString(e.text)
	}
	if b.Len() == 0 {
		_ = os.Remove(path) // it may not be there
		return
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
