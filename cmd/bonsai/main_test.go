package main

import (
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
		if c.Hidden || !c.Runnable() {
			return
		}
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for _, line := range strings.FieldsFunc(c.Example, func(r rune) bool { return strings.ContainsRune("\n;|>&", r) }) {
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
