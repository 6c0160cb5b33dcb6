package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// lines are command lines up to the cursor and the one word that completes the last of theirs, "" for none.
func lines() map[string]string {
	return map[string]string{
		"kubectl vers":                    "version",
		"kubectl rollout und":             "undo",
		"kubectl get po":                  "pods",
		"kubectl get pods ":               "p",
		"kubectl get pods --show-la":      "--show-labels",
		"kubectl get pods --cluster=":     "here",
		"kubectl get pods --cluster he":   "here",
		"kubectl get pods --cluster=x":    "",
		"kubectl --cluster=here get pods": "pods",
		"kubectl get nosuch ":             "",
	}
}

// shell returns how to run a program of that name in which kubectl is ours, or skips the test where there is none.
func shell(t *testing.T, name string) func(args ...string) *exec.Cmd {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("NOT TRIED: there is no %s; completion in it was not tested", name)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kubectl": fmt.Sprintf("#!/bin/sh\nKUBECTL_UNDER_TEST=1 exec %q \"$@\"\n", os.Args[0]),
		"config":  fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"here","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"here"}}],"current-context":"c"}`, server(t)),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(dir, "config"),
			"KUBECACHEDIR="+filepath.Join(dir, "cache"), "HOME="+dir, "TERM=dumb")
		return cmd
	}
}

// TestBashCompletes: bash completes commands, flags, their values, types and names with our script, also where the
// package bash-completion is not there.
func TestBashCompletes(t *testing.T) {
	t.Parallel()
	bash := shell(t, "bash")
	for line, want := range lines() {
		t.Run(line, func(t *testing.T) {
			// compopt works in readline alone
			const script = `compopt() { :; }; source <(kubectl completion bash) && COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 && __start_kubectl && printf '%s\n' "${COMPREPLY[@]}"`
			cmd := bash("--norc", "--noprofile", "-c", script, "bash", line)
			var said strings.Builder
			cmd.Stderr = &said
			out, _ := cmd.Output() // what it says is judged
			if got := strings.TrimSpace(string(out)); got != want || said.Len() > 0 {
				t.Errorf("%q becomes %q, want %q\n%s", line, got, want, said.String())
			}
		})
	}
}

// typed is a zsh in which another one has a terminal: the line is typed there, then a tab and a key that shows what the
// line became.
const typed = `zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner 'PS1=; PROMPT=; unsetopt beep; autoload -U compinit; compinit -u -D; source <(kubectl completion zsh)
shown() { print -r -- "<shown>$BUFFER</shown>"; }; zle -N shown; bindkey "^X" shown; print re""ady'
zpty -r inner said '*ready*'
zpty -w -n inner "$1"$'\t\x18'
zpty -r inner said '*</shown>*'
print -r -- "$said"
zpty -d inner`

// TestZshCompletes: the same in zsh, typed on a terminal.
func TestZshCompletes(t *testing.T) {
	t.Parallel()
	zsh := shell(t, "zsh")
	for line, want := range lines() {
		t.Run(line, func(t *testing.T) {
			out, err := zsh("-f", "-c", typed, "zsh", line).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			_, got, _ := strings.Cut(string(out), "<shown>")
			got, _, _ = strings.Cut(got, "</shown>")
			completed := line
			if want != "" { // in the place of the last word, with the blank that ends it
				completed = line[:strings.LastIndexAny(line, " =")+1] + want + " "
			}
			if got != completed {
				t.Errorf("%q becomes %q, want %q\n%q", line, got, completed, out)
			}
		})
	}
}

// TestFishCompletes: the same in fish.
func TestFishCompletes(t *testing.T) {
	t.Parallel()
	fish := shell(t, "fish")
	for line, want := range lines() {
		t.Run(line, func(t *testing.T) {
			out, err := fish("--no-config", "-c", "kubectl completion fish | source; complete -C $argv[1]",
				line).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			got, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\t") // what comes after it describes it
			if i := strings.Index(line, "="); want != "" && strings.HasSuffix(line, "=") && i >= 0 {
				want = line[strings.LastIndex(line, " ")+1:] + want // fish completes the whole word
			}
			if got != want {
				t.Errorf("%q becomes %q, want %q", line, got, want)
			}
		})
	}
}
