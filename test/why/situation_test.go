package why

import (
	"slices"
	"strings"
	"testing"
)

const good = `# A pod that asks for too much.
# It waits.
question: Why?
setup:
- apply: "{}"
- run: kubectl get pods
  fails: no
- until: kubectl get pod x
  matches: Pending
ask: pod/x
first: [cpu]
`

func TestParse(t *testing.T) {
	s, err := Parse("pod-big", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "pod-big" || s.Story != "A pod that asks for too much.\nIt waits.\n" || len(s.Setup) != 3 || s.Alone {
		t.Errorf("%+v", s)
	}
	s, err = Parse("pod-big", []byte(good+"pretend: [{name: a}]\n"))
	if err != nil || !s.Alone {
		t.Errorf("a situation with a pretended node does not run alone: %+v, %v", s, err)
	}
}

// TestParseRefuses: a file with a mistake is refused, and the error names it.
func TestParseRefuses(t *testing.T) {
	change := func(old, with string) string { return strings.Replace(good, old, with, 1) }
	for what, c := range map[string]struct{ name, text, want string }{
		"a bad name":           {"Pod", good, "does not match"},
		"no story":             {"pod", change("# A pod that asks for too much.\n# It waits.\n", ""), "story"},
		"an unknown field":     {"pod", good + "fist: [a]\n", "fist"},
		"a field twice":        {"pod", good + "ask: pod/y\n", "ask"},
		"no question":          {"pod", change("question: Why?\n", ""), "required"},
		"no cause":             {"pod", change("first: [cpu]\n", ""), "first is missing"},
		"well with a cause":    {"pod", good + "well: true\n", "no first cause"},
		"a bad expression":     {"pod", change("[cpu]", "['(']"), "missing closing"},
		"an unknown cluster":   {"pod", good + "on: [kind]\n", "unknown cluster"},
		"an unknown need":      {"pod", good + "needs: [gpus]\n", "unknown"},
		"two things to do":     {"pod", change("- apply", "- run: a b\n  apply"), "one of"},
		"until without a goal": {"pod", change("  matches: Pending\n", ""), "belong together"},
		"fails without a run":  {"pod", change(`"{}"`, "\"{}\"\n  fails: b"), "belongs to run"},
		"an open quote":        {"pod", change("ask: pod/x", "ask: --what-if 'scale"), "not closed"},
		"a wait without end":   {"pod", change("  matches: Pending\n", "  matches: a\n  within: 1h\n"), "within"},
	} {
		if _, err := Parse(c.name, []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, which does not say %q", what, err, c.want)
		}
	}
}

func TestWords(t *testing.T) {
	for command, want := range map[string][]string{
		"":                        nil,
		"a  b":                    {"a", "b"},
		"a 'b c'd '' e":           {"a", "b cd", "", "e"},
		`a={.b[?(@.c=="d")].e} f`: {`a={.b[?(@.c=="d")].e}`, "f"},
	} {
		if got, err := words(command); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, not %q", command, got, err, want)
		}
	}
}
