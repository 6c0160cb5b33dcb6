package main

import (
	"io"
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
		// A kubeconfig has its user's key.
		if strings.Contains(c.Example, "kubeconfig > ") && !strings.Contains(c.Example, "(umask 077; ") {
			t.Errorf("%s: others can read what its example writes", c.CommandPath())
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

// TestResolve: a cluster that is named wrongly is no cluster, before anything is done to one. An empty value is no less
// wrong: it comes from a variable that is not set, and the default cluster would answer for it.
func TestResolve(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: others enter namespaces of their own first")
	}
	for _, c := range []struct{ line, home, data, want string }{
		{line: "--data-dir=", want: `--data-dir: must be an absolute path below /, not ""`},
		{line: "--data-dir=", data: "/srv/bonsai", want: "--data-dir: "},
		{line: "--data-dir=bonsai", want: `--data-dir: must be an absolute path below /, not "bonsai"`},
		{line: "--data-dir=/", want: "--data-dir: "},
		{data: "bonsai", want: "$BONSAI_DATA: "},
		{home: "clusters", want: "$BONSAI_HOME: "},
		{line: "--data-dir=/srv/bonsai", home: "clusters", want: "$BONSAI_HOME: "},
		{line: "--name=", want: "--name: "},
		{line: "--name=../x", want: "--name: "},
		{line: "--name=x --data-dir=/srv/bonsai"},
		{line: "--data-dir=/srv/a:b"}, // join could make it before, so down must find it
		{data: "/srv/bonsai"},
	} {
		if c.home == "" {
			c.home = t.TempDir()
		}
		t.Setenv("BONSAI_HOME", c.home)
		t.Setenv("BONSAI_DATA", c.data)
		for _, name := range []string{"down", "up", "stop", "status", "kubeconfig", "token list"} {
			root := command()
			found, rest, err := root.Find(append(strings.Fields(name), strings.Fields(c.line)...))
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err != nil {
				t.Fatal(err)
			}
			err = root.PersistentPreRunE(found, nil) // and not the command: it would do what it is for
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("bonsai %s %s with the home %q and the data %q: %v, not %q", name, c.line, c.home, c.data, err,
					c.want)
			}
		}
	}
}

// TestExecFlags: flags are exec's own on both sides of the node, and the command's after two dashes. Whoever leaves the
// dashes out learns about them.
func TestExecFlags(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"exec n1 -- ls -l":        "",
		"exec n1 -it -- bash -i":  "",
		"exec n1 ls":              "",
		"exec n1 ls -l":           "unknown shorthand flag: 'l' in -l (flags of COMMAND come after two dashes: ",
		"exec n1 nft --json list": "unknown flag: --json (flags of COMMAND come after two dashes: ",
	} {
		found, rest, err := command().Find(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		if err = found.ParseFlags(rest); err != nil {
			err = found.FlagErrorFunc()(found, err)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("bonsai %s: %v, not %q", line, err, want)
		}
	}
}

// TestNegativeSince: a time in the future is no other way to ask for all lines.
func TestNegativeSince(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root, as bonsai logs does")
	}
	for _, line := range []string{"logs --since -5m", "logs kubelet --since=-1ns"} {
		c := command()
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		c.SetArgs(append(strings.Fields(line), "--data-dir", t.TempDir()))
		if err := c.Execute(); err == nil || err.Error() != "--since: must not be negative" {
			t.Errorf("bonsai %s: %v", line, err)
		}
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
