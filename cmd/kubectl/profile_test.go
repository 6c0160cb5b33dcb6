package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProfile: --profile writes what it names, of a command that fails too, and a wrong one is said before anything is
// done.
func TestProfile(t *testing.T) {
	t.Parallel()
	url := server(t)
	const pprof, trace = "\x1f\x8b", "go 1."
	for _, c := range []struct {
		args, said string
		code       int
		file       string // how the profile begins, "" for none
	}{
		{"get pods -o name", "", 0, ""},
		{"get pods -o name --profile=none", "", 0, ""},
		{"get pods -o name --profile=cpu", "", 0, pprof},
		{"get pods -o name --profile=heap", "", 0, pprof},
		{"get pods -o name --profile=goroutine", "", 0, pprof},
		{"get pods -o name --profile=threadcreate", "", 0, pprof},
		{"get pods -o name --profile=block", "", 0, pprof},
		{"get pods -o name --profile=mutex", "", 0, pprof},
		{"get pods -o name --profile=trace", "", 0, trace},
		{"get nosuch --profile=cpu", "error: the server doesn't have a resource type \"nosuch\"\n", 1, pprof},
		{"get nosuch --profile=heap", "error: the server doesn't have a resource type \"nosuch\"\n", 1, pprof},
		{"get nosuch --profile=HEAP", "error: unknown profile 'HEAP'\n", 1, ""},
		{"get nosuch --profile=", "error: unknown profile ''\n", 1, ""},
		{"get nosuch --profile=cpu --profile-output=no/such", "error: open no/such: no such file or directory\n", 1,
			""},
		{"get pods -o name --profile=mutex --profile-output=no/such",
			"error: open no/such: no such file or directory\n", 1, ""},
		{"get pods --log-flush-frequency=5",
			"error: invalid argument \"5\" for \"--log-flush-frequency\" flag: parse error\nSee 'kubectl get --help' for usage.\n", 1, ""},
		{"get pods --log-flush-frequency=0s", "error: --log-flush-frequency must be greater than 0\n", 1, ""},
		{"get pods -o name --log-flush-frequency=1s", "", 0, ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0],
				append(strings.Fields(c.args), "--server", url, "--kubeconfig", os.DevNull, "--cache-dir",
					t.TempDir())...)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "KUBECTL_UNDER_TEST=1")
			var said strings.Builder
			cmd.Stderr = &said
			_ = cmd.Run() // its code is judged
			if said.String() != c.said || cmd.ProcessState.ExitCode() != c.code {
				t.Errorf("code %d, said %q", cmd.ProcessState.ExitCode(), said.String())
			}
			data, err := os.ReadFile(filepath.Join(cmd.Dir, "profile.pprof"))
			if os.IsNotExist(err) == (c.file != "") || !strings.HasPrefix(string(data), c.file) {
				t.Errorf("the profile is %.8q, %v", data, err)
			}
		})
	}
}
