package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAskEnds: an explanation ends in its time, also if a program of the kubeconfig that makes credentials goes on and
// holds its output open.
func TestAskEnds(t *testing.T) {
	for name, c := range map[string]struct{ script, want, wantErr string }{
		"answer, and a helper that stays": {"sleep 20 & echo '{}'", "{}", ""},
		"no answer":                       {"sleep 20; echo late", "", "took too long"},
		"error":                           {"echo no >&2; exit 1", "", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "kubectl-why")
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			begun := time.Now()
			out, err := (&consoleOptions{}).ask(ctx, "why", nil)
			if took := time.Since(begun); took > 15*time.Second {
				t.Errorf("it took %s", took)
			}
			if strings.TrimSpace(string(out)) != c.want || (err == nil) != (c.wantErr == "") ||
				err != nil && !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
}

// TestFragment: the link names the kubeconfig's namespace, unless it is the one that the page takes by itself.
func TestFragment(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]string{"default": "token=t", "shop": "token=t&namespace=shop",
		"a&b#c": "token=t&namespace=a%26b%23c"} {
		if got := fragment("t", namespace); got != want {
			t.Errorf("namespace %q: %q, want %q", namespace, got, want)
		}
	}
}
