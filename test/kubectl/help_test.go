package kubectl

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestHelp holds every command that Kubernetes' kubectl has against ours, by what --help says: the line of its usage,
// the commands below it in their groups, and its flags with their short forms and defaults, in their order. Record
// again with
//
//	go test ./test/kubectl -run TestHelp -args -record -kubectl …/kubectl
func TestHelp(t *testing.T) {
	testdata, err := filepath.Abs("testdata") // the invocations have a directory of their own
	if err != nil {
		t.Fatal(err)
	}
	if *only != "" && *only != "help" {
		t.Skip("another table is run alone")
	}
	explained := headings(t)
	one := table{name: "help"}
	r := prepare(t, one, "https://127.0.0.1:1", "none")
	answers := map[string]entry{}
	for todo := []string{"kubectl"}; len(todo) > 0; todo = todo[1:] {
		line := todo[0]
		v, err := parse(line + " --help")
		if err != nil {
			t.Fatal(err)
		}
		a := r.run(t, v)
		text, below := shape(a.out)
		v.line = line
		one.invocations = append(one.invocations, v)
		answers[line] = entry{text: answer{out: text, errOut: a.errOut, code: a.code}.String()}
		for _, name := range below {
			todo = append(todo, line+" "+name)
		}
	}
	if len(answers) < 100 {
		t.Fatalf("only %d commands were found", len(answers))
	}
	path := filepath.Join(testdata, "reference", one.name+".txt")
	if *record {
		writeAnswers(t, path, one, answers)
		return
	}
	for line := range readAnswers(t, path) {
		if _, ok := answers[line]; !ok {
			t.Errorf("%s is no command of ours", line)
		}
	}
	compare(t, one, answers, testdata, explained)
}

var (
	subcommand = regexp.MustCompile(`^  ([a-z][a-z-]*) {2,}`)
	flagLine   = regexp.MustCompile(`^    (-\w, )?--[\w-]+=.*:$`)
)

// shape is what a page of help says of commands and flags, without the words that explain them, and the names of the
// commands below it.
func shape(help string) (string, []string) {
	var out strings.Builder
	var below []string
	group, usage := "", false
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\n")
		switch name := subcommand.FindStringSubmatch(line); {
		case usage && strings.HasPrefix(line, "  "):
			out.WriteString("usage: " + strings.TrimSpace(line) + "\n")
		case strings.HasSuffix(line, ":") && !strings.HasPrefix(line, " "):
			group = line
		case name != nil && (strings.Contains(group, "Commands")):
			out.WriteString(group + " " + name[1] + "\n")
			below = append(below, name[1])
		case group == "Options:" && flagLine.MatchString(line):
			out.WriteString(strings.TrimSpace(strings.TrimSuffix(line, ":")) + "\n")
		}
		usage = group == "Usage:"
	}
	return out.String(), below
}

func TestShape(t *testing.T) {
	t.Parallel()
	text, below := shape("Do it.\n\nAvailable Commands:\n  one   First\n\nOptions:\n    -f, --file='':\n\tThe file:\n\nUsage:\n  kubectl x [options]\n\nUse it.\n")
	if want := "Available Commands: one\n-f, --file=''\nusage: kubectl x [options]\n"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	if len(below) != 1 || below[0] != "one" {
		t.Errorf("got %q", below)
	}
}
