package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestExamples: every command that does something has an example in its --help, which names it and takes its flags.
func TestExamples(t *testing.T) {
	t.Parallel()
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		// cobra's, which explain their use at length
		if c.Hidden || c.HasSubCommands() || c.HasParent() && c.Parent().Name() == "completion" {
			return
		}
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for _, line := range strings.FieldsFunc(c.Example, func(r rune) bool {
			return strings.ContainsRune("\n;|>&", r)
		}) {
			words := strings.Fields(line)
			if len(words) == 0 || words[0] != "bonsai" {
				continue
			}
			fresh := command() // flags keep what they are given
			found, rest, err := fresh.Find(words[1:])
			if err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			if args := found.Flags().Args(); found.Args != nil {
				if err := found.Args(found, args); err != nil {
					t.Errorf("%q: %v", line, err)
				}
			}
		}
	}
	visit(command())
}

// TestKubeconfig: a command that holds another one does what it is for, and does not show its help.
func TestKubeconfig(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root, as bonsai kubeconfig does")
	}
	c := command()
	var out strings.Builder
	c.SetOut(&out)
	c.SetArgs([]string{"kubeconfig", "--data-dir", t.TempDir()})
	if err := c.Execute(); err == nil || !strings.HasPrefix(err.Error(), "no cluster in") {
		t.Errorf("without a cluster it ended with %v and printed %q", err, out.String())
	}
}

// TestUnknownCommands: a word that is no command fails at each level, and nothing is done.
func TestUnknownCommands(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"fly", "image fly", "node fly worker", "completion tcsh"} {
		c := command()
		var out strings.Builder
		c.SetOut(&out)
		c.SetErr(&out)
		c.SetArgs(strings.Fields(line))
		if err := c.Execute(); err == nil || !strings.HasPrefix(err.Error(), "unknown command") {
			t.Errorf("bonsai %s: %v", line, err)
		}
	}
}
