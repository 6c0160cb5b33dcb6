package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBashCompletes: bash completes commands, flags, their values, types and names with our script, also where the package
// bash-completion is not there.
func TestBashCompletes(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("NOT TRIED: there is no bash")
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
	for line, want := range map[string]string{
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
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			// compopt works in readline alone
			const script = `compopt() { :; }; source <(kubectl completion bash) && COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 && __start_kubectl && printf '%s\n' "${COMPREPLY[@]}"`
			cmd := exec.CommandContext(t.Context(), bash, "--norc", "--noprofile", "-c", script, "bash", line)
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(dir, "config"), "KUBECACHEDIR="+t.TempDir())
			var said strings.Builder
			cmd.Stderr = &said
			out, _ := cmd.Output() // what it says is judged
			if got := strings.TrimSpace(string(out)); got != want || said.Len() > 0 {
				t.Errorf("%q becomes %q, want %q\n%s", line, got, want, said.String())
			}
		})
	}
}
