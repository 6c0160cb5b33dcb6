package why

import (
	"os/exec"
	"testing"
)

// TestWord: a shell takes each word for what it is, whatever others wrote into it.
func TestWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"web":              "web",
		"":                 "",
		"system:node-1":    "system:node-1",
		"x; rm -rf ~":      "x; rm -rf ~",
		"$(id)`id`":        "$(id)`id`",
		"it's":             "it's",
		"'; id; '":         "'; id; '",
		"~":                "~",
		"=ls":              "=ls",
		"a*b?[c]{d,e}!f":   "a*b?[c]{d,e}!f",
		"a\\":              "a\\",
		"--all":            placeholder,
		"-A":               placeholder,
		"a\nid":            placeholder,
		"a\x1b[2Jb":        placeholder,
		"a\u202eb":         placeholder,
		"a\xffb":           placeholder,
		`{"spec":{"a":1}}`: `{"spec":{"a":1}}`,
	} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+string(Word(text))).Output()
		if err != nil || string(out) != want {
			t.Errorf("Word(%q) is %s: the shell reads %q, %v", text, Word(text), out, err)
		}
	}
}

// TestCommand: numbers and what is quoted already stay as they are.
func TestCommand(t *testing.T) {
	t.Parallel()
	o := Object{Group: "x.example", Kind: "Tea;id", Namespace: "a b", Name: "$(id)"}
	for got, want := range map[CommandLine]string{
		Command("kubectl scale %s%s --replicas=%d", o.Arg(), o.Flag(), 3): "kubectl scale 'tea;id.x.example/$(id)' " +
			"-n 'a b' --replicas=3",
		Command("kubectl delete pod %s", "a;id"):               "kubectl delete pod 'a;id'",
		Then("true", Command("kubectl get %s", "x y"), "true"): "true && kubectl get 'x y' && true",
	} {
		if string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
