package tour

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestChapters: all chapters can be read, and every place in the code that they name is there.
func TestChapters(t *testing.T) {
	t.Parallel()
	list, err := Chapters()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		for _, s := range c.Steps {
			commands := 0
			for _, p := range s.Parts {
				if p.Where != "" && !declared(t, p.Where) {
					t.Errorf("%s, %s: %s is not there", c.Name, s.Title, p.Where)
				}
				if p.Command != nil {
					commands++
					if len(p.Command.Expect) == 0 {
						t.Errorf("%s, %s: nothing is expected of kubectl %s", c.Name, s.Title, p.Command.Args)
					}
				}
			}
			if commands == 0 {
				t.Errorf("%s, %s: nothing happens", c.Name, s.Title)
			}
		}
	}
}

// declared reports whether a file of the repository declares a function or method.
func declared(t *testing.T, where string) bool {
	path, name, _ := strings.Cut(where, ":")
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", path), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return false
	}
	for _, d := range f.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			return true
		}
	}
	return false
}

// TestParse: what is no chapter is refused with its line.
func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "no title",
		"# A\n":                         "no steps",
		"# A\n$ kubectl get pods\n":     "line 2: \"$\" stands before the first step",
		"# A\n## B\n$ rm -rf /\n":       "line 3: no command of kubectl",
		"# A\n## B\n$ kubectl get 'x\n": "line 3: no command of kubectl",
		"# A\n## B\n= x\n":              "line 3: no expression",
		"# A\n## B\n$ kubectl x\n= (\n": "line 4: no expression",
		"# A\n## B\n    input\n":        "line 3: input without a command",
	} {
		if _, err := Parse("x", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	c, err := Parse("x", "# A\nintro\nof it\n\nmore\n## B\n$ kubectl apply -f - --x='a b'\n    one\n      two\n= y\n")
	if err != nil {
		t.Fatal(err)
	}
	cmd := c.Steps[0].Parts[0].Command
	if got := fmt.Sprintf("%q %q %q %v", c.Intro, cmd.Args, cmd.Input, cmd.Expect); got !=
		`["intro of it" "more"] ["apply" "-f" "-" "--x=a b"] "one\n  two\n" [y]` {
		t.Error(got)
	}
}

// TestChanges: a reader sees which fields came, went and changed, and no noise.
func TestChanges(t *testing.T) {
	t.Parallel()
	before := `{"metadata":{"name":"a","resourceVersion":"1"},"spec":{"x":1},"status":{"conditions":[{"type":"Ready","status":"False"}]}}`
	after := `{"metadata":{"name":"a","resourceVersion":"2"},"spec":{"y":2},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
	lines, err := changes(before, after)
	if got := strings.Join(lines, "|"); err != nil ||
		got != "- .spec.x = 1|+ .spec.y = 2|~ .status.conditions[Ready].status: False → True" {
		t.Error(got, err)
	}
	if lines, _ := changes("", after); lines[0] != "it has 3 fields now" {
		t.Error(lines)
	}
	if lines, _ := changes(after, after); lines[0] != "nothing has changed in it" {
		t.Error(lines)
	}
}

// TestPlay: a chapter waits for what it says, says what did not come true, and removes its namespace however it ends.
func TestPlay(t *testing.T) {
	t.Parallel()
	c, err := Parse("x", "# A\nintro\n## B\nprose\n$ kubectl get x\n= two\nchanges pod/x\n## C\n$ kubectl get y\n= z\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]struct {
		steps int // that the reader wants
		y     string
		want  []string
		fail  bool
	}{
		"whole": {9, "z", []string{"intro", "1 of 2. B", "prose", "$ kubectl get x", "    two", "it has 1 fields",
			"2 of 2. C", "    z"}, false},
		"left":   {1, "z", []string{"1 of 2. B", "deleted"}, false},
		"untrue": {9, "not", []string{"2 of 2. C", "deleted"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var ran []string
			tries := 0
			var out strings.Builder
			left := k.steps
			p := &Player{Out: &out, Width: 80, Next: func() bool { left--; return left >= 0 },
				Kubectl: func(_ context.Context, args []string, _ string) (string, error) {
					line := strings.Join(args, " ")
					ran = append(ran, line)
					switch {
					case strings.HasPrefix(line, "create"):
						return "created", nil
					case strings.HasPrefix(line, "delete"):
						return "deleted", nil
					case strings.HasSuffix(line, "json"):
						return `{"spec":{"a":1}}`, nil
					case strings.HasSuffix(line, "get y"):
						if k.y != "z" {
							cancel() // nobody waits two minutes
						}
						return k.y, nil
					}
					tries++
					return []string{"one", "two"}[min(tries-1, 1)], nil
				}}
			err := p.Play(ctx, c)
			if (err != nil) != k.fail {
				t.Error(err)
			}
			for _, w := range k.want {
				if !strings.Contains(out.String(), w) {
					t.Errorf("%q is not in\n%s", w, out.String())
				}
			}
			if last := ran[len(ran)-1]; last != "delete namespace bonsai-tour" {
				t.Error(ran)
			}
		})
	}
}

// TestOthersSteerNoTerminal: what others wrote into an object is shown, and steers no terminal.
func TestOthersSteerNoTerminal(t *testing.T) {
	t.Parallel()
	c, err := Parse("x", "# A\n## B\n$ kubectl get x\n= two\nchanges pod/x\nchanges pod/x\n")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	value := ""
	p := &Player{Out: &out, Width: 80, Next: func() bool { return true },
		Kubectl: func(_ context.Context, args []string, _ string) (string, error) {
			if slices.Contains(args, "json") {
				value += `\u001b[2J`
				return `{"spec":{"a":"` + value + `"}}`, nil
			}
			return "two created deleted \x1b[2J", nil
		}}
	if err := p.Play(t.Context(), c); err != nil || strings.Contains(out.String(), "\x1b") ||
		strings.Count(out.String(), "^[") != 4 {
		t.Errorf("%q, %v", out.String(), err)
	}
	wrong := &Wrong{Output: "\x1b[2J"}
	if strings.Contains(wrong.Error(), "\x1b") {
		t.Errorf("%q", wrong)
	}
}
