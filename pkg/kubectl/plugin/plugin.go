// Package plugin runs programs called kubectl-… as commands of kubectl, and lists them.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
)

const prefix = "kubectl-"

// Find returns the program on the PATH for the most of the leading words of args, and what of args is left for it: with
// "foo bar baz", kubectl-foo-bar-baz before kubectl-foo-bar before kubectl-foo. least is how many words the name must
// have. Dashes in words are underscores in names. Without any, path is "".
func Find(args []string, least int) (path string, rest []string) {
	words := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") })
	if words < 0 {
		words = len(args)
	}
	for n := words; n >= least && n > 0; n-- {
		if path, err := exec.LookPath(prefix + fileName(args[:n])); err == nil {
			return path, args[n:]
		}
	}
	return "", nil
}

// Run runs the program at path until it ends. A context that ends is passed on as SIGTERM; the program's exit code
// becomes ours.
func Run(ctx context.Context, streams cli.IOStreams, path string, args []string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = environment()
	raw := streams.Raw() // what a program writes is its own
	cmd.Stdin, cmd.Stdout, cmd.Stderr = raw.In, raw.Out, raw.ErrOut
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return &cli.ExitError{Code: exit.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("run the plug-in %s: %w", path, err)
	}
	return nil
}

// environment is kubectl's own, with the path of the kubectl that runs: a program may run it again.
func environment() []string {
	env := os.Environ()
	if self, err := os.Executable(); err == nil {
		env = append(env, "KUBECTL_PATH="+self)
	}
	return env
}

// NewCommand makes "kubectl plugin".
func NewCommand(_ *cli.Factory, streams cli.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "plugin [flags]",
		Short:   "Provides utilities for interacting with plugins",
		Long:    "Provides utilities for interacting with plugins.\n\n A program on the PATH whose name begins with kubectl- is a command of kubectl: kubectl-foo-bar runs as \"kubectl foo bar\". It cannot take the place of a command that kubectl has.",
		Example: "# List all available plugins\nkubectl plugin list\n\n# List only binary names of available plugins without paths\nkubectl plugin list --name-only",
		RunE:    cli.Group,
	}
	var nameOnly bool
	list := &cobra.Command{
		Use:     "list",
		Short:   "List all visible plugin executables on a user's PATH",
		Long:    "List all available plugin files on a user's PATH: those whose names begin with kubectl-. Warnings name what keeps a plugin from running.",
		Example: "# List all available plugins\nkubectl plugin list",
		RunE:    func(cmd *cobra.Command, _ []string) error { return list(cmd.Root(), streams, nameOnly) },
	}
	list.Flags().BoolVar(&nameOnly, "name-only", false,
		"If true, display only the binary name of each plugin, rather than its full path")
	cmd.AddCommand(list)
	return cmd
}

// list shows all plug-ins, with what is wrong with each.
func list(root *cobra.Command, streams cli.IOStreams, nameOnly bool) error {
	found, shown, warnings := false, map[string]string{}, 0
	for _, dir := range directories() {
		entries, err := os.ReadDir(dir)
		if err != nil {
			fmt.Fprintf(streams.ErrOut, "Unable to read directory %q from your PATH: %v. Skipping...\n", dir, err)
			continue
		}
		for _, e := range entries {
			if e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
				continue
			}
			if !found {
				fmt.Fprintf(streams.Out, "The following compatible plugins are available:\n\n")
				found = true
			}
			path := filepath.Join(dir, e.Name())
			name := path
			if nameOnly {
				name = e.Name()
			}
			fmt.Fprintln(streams.Out, name)
			for _, w := range judge(root, path, shown) {
				fmt.Fprintf(streams.ErrOut, "  - %s\n", w)
				warnings++
			}
		}
	}
	switch {
	case !found:
		return errors.New("unable to find any kubectl plugins in your PATH")
	case warnings == 1:
		return errors.New("one plugin warning was found")
	case warnings > 1:
		return fmt.Errorf("%d plugin warnings were found", warnings)
	}
	return nil
}

// Commands names the plug-ins that are commands below root, in the order of the PATH: each word once, and neither what
// cannot be run nor what root has itself.
func Commands(root *cobra.Command) []string {
	var out []string
	for _, words := range names(root) {
		if !slices.Contains(out, words[0]) {
			out = append(out, words[0])
		}
	}
	return out
}

// names are the words of each plug-in that can be run below root, in the order of the PATH.
func names(root *cobra.Command) [][]string {
	var out [][]string
	for _, dir := range directories() {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			name, ok := strings.CutPrefix(e.Name(), prefix)
			if !ok || len(judge(root, filepath.Join(dir, e.Name()), map[string]string{})) > 0 {
				continue
			}
			words := strings.Split(name, "-")
			for i, w := range words {
				words[i] = strings.ReplaceAll(w, "_", "-")
			}
			if !slices.Contains(words, "") {
				out = append(out, words)
			}
		}
	}
	return out
}

// directories are those of the PATH, each once.
func directories() []string {
	var out []string
	seen := map[string]bool{}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if dir = strings.TrimSpace(dir); dir != "" && !seen[dir] {
			seen[dir] = true
			out = append(out, dir)
		}
	}
	return out
}

// judge says what keeps the program at path from being run as a command. shown are the programs before it, by name.
func judge(root *cobra.Command, path string, shown map[string]string) []string {
	var warnings []string
	name := filepath.Base(path)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return []string{fmt.Sprintf("error: unable to identify %s as an executable file: %v", path, err)}
	case info.Mode()&0o111 == 0:
		warnings = append(warnings,
			fmt.Sprintf("warning: %s identified as a kubectl plugin, but it is not executable", path))
	case shown[name] != "":
		warnings = append(warnings,
			fmt.Sprintf("warning: %s is overshadowed by a similarly named plugin: %s", path, shown[name]))
	default:
		shown[name] = path
	}
	words := strings.Split(strings.TrimPrefix(name, prefix), "-")
	if cmd, _, err := root.Find(words); err == nil && cmd != root {
		warnings = append(warnings, fmt.Sprintf("warning: %s overwrites existing command: %q", name, cmd.CommandPath()))
	}
	return warnings
}
