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

// TestTo: the flags come after the verb of each command, and never into a word of others.
func TestTo(t *testing.T) {
	t.Parallel()
	flags := Command("--context %s", "a b")
	for line, want := range map[CommandLine]string{
		"":                            "",
		"kubectl get pods -n shop":    "kubectl get --context 'a b' pods -n shop",
		"kubectl version":             "kubectl version --context 'a b'",
		"true && kubectl delete ns x": "true && kubectl delete --context 'a b' ns x",
		Then(Command("kubectl get %s", "x && kubectl delete ns"), "kubectl get y"): "kubectl get --context 'a b' 'x && kubectl " +
			"delete ns' && kubectl get --context 'a b' y",
		Then(Command("kubectl get %s", "it's && kubectl delete ns"), "kubectl get y"): `kubectl get --context 'a b' 'it'\''s && ` +
			"kubectl delete ns' && kubectl get --context 'a b' y",
	} {
		if got := line.To(flags); string(got) != want {
			t.Errorf("%s\n%s, want\n%s", line, got, want)
		}
		if got := line.To(""); got != line {
			t.Errorf("%s became %s", line, got)
		}
	}
	shared := []Cause{{Fixes: []Fix{{Command: "kubectl get x"}}}}
	a := Answer{Causes: []Cause{{Because: shared}, {Because: shared}}}.To("--context c")
	for _, c := range a.Causes {
		if got := c.Because[0].Fixes[0].Command; got != "kubectl get --context c x" {
			t.Error(got)
		}
	}
	if shared[0].Fixes[0].Command != "kubectl get x" {
		t.Error("it changed what answers share")
	}
}
