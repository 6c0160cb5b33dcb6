package kubectl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
)

// TestBuiltInsAreNotShadowed: neither a program on the PATH nor an alias takes the place of any command of kubectl's,
// hidden ones and other names of theirs too, with flags before and words after it; but commands of create that there
// are not may be programs.
func TestBuiltInsAreNotShadowed(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	ran := filepath.Join(home, "ran")
	script := fmt.Sprintf("#!/bin/sh\necho \"$0\" >>%s\n", ran)
	program := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	streams := cli.IOStreams{Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
	f := cli.NewFactory("v1", streams)
	root := newRoot(f, streams, &diagnosis{})
	addAll(root, f, streams, nil, -1)
	root.InitDefaultHelpCmd() // as running it does
	var commands [][]string   // in words
	var walk func(c *cobra.Command, words []string)
	walk = func(c *cobra.Command, words []string) {
		for _, sub := range c.Commands() {
			for _, name := range append([]string{sub.Name()}, sub.Aliases...) {
				commands = append(commands, append(slices.Clone(words), name))
			}
			walk(sub, append(slices.Clone(words), sub.Name()))
		}
	}
	walk(root, nil)
	aliases := "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\naliases:\n- {name: stolen, command: version, options: [{name: client, default: \"true\"}]}\n"
	for _, words := range commands {
		name := strings.ReplaceAll(strings.Join(words, "\x00"), "-", "_")
		name = strings.ReplaceAll(name, "\x00", "-")
		program("kubectl-" + name)
		program("kubectl-" + strings.Join(words, "-"))
		program("kubectl-" + name + "-nosuch")
		program("kubectl_complete-" + name)
		if len(words) == 1 && !strings.Contains(words[0], "-") {
			aliases += fmt.Sprintf("- {name: %s, command: version, options: [{name: client, default: \"true\"}]}\n",
				words[0])
		}
	}
	preferences := filepath.Join(home, "kuberc")
	if err := os.WriteFile(preferences, []byte(aliases), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", os.DevNull)
	said := func(line ...string) string {
		var out bytes.Buffer
		Main(t.Context(), "v1.36.3", line, cli.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
		return out.String()
	}
	for _, rc := range []string{"off", preferences} {
		t.Setenv("KUBERC", rc)
		for _, words := range commands {
			for _, line := range [][]string{
				append(slices.Clone(words), "--help"),
				append([]string{"-n", "x"}, append(slices.Clone(words), "--help")...),
				append([]string{"--namespace=x"}, append(slices.Clone(words), "-h")...),
				append(slices.Clone(words), "-n", "x", "nosuch", "--help"),
				append([]string{"__complete"}, append(slices.Clone(words), "--nosu")...),
			} {
				if words[0] == "create" && len(words) == 1 && slices.Contains(line, "nosuch") {
					continue
				}
				out := said(line...)
				if data, err := os.ReadFile(ran); err == nil {
					t.Fatalf("%q ran %s", line, data)
				}
				if strings.Contains(out, "Client Version") {
					t.Fatalf("%q is the alias", line)
				}
			}
		}
	}
	if out := said("help", "get"); !strings.Contains(out, "kubectl get") {
		t.Errorf("help get: %s", out)
	}
	if out := said("stolen"); !strings.Contains(out, "Client Version") { // the test can fail
		t.Errorf("no alias is applied: %s", out)
	}
	said("create", "nosuch", "--help")
	if data, err := os.ReadFile(ran); err != nil || string(data) != filepath.Join(dir, "kubectl-create-nosuch")+"\n" {
		t.Errorf("create nosuch: %q, %v", data, err)
	}
}
