package plugin

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
)

// completer is how the name of a program begins that completes the arguments of a plug-in: kubectl_complete-foo those
// of kubectl-foo.
const completer = "kubectl_complete-"

// maxCompletions bounds what is read of a completer, in bytes.
const maxCompletions = 1 << 20

// Describe is what the help and the completion say of a plug-in's word.
func Describe(word string) string {
	return fmt.Sprintf("The command %s is a plugin installed by the user", word)
}

// AddCompletions adds the plug-ins to root as commands that can be completed but not run. words are what is to be
// completed, the last one begun. Behind the word of a plug-in, root's flags are taken away: they are none of the
// plug-in's.
func AddCompletions(root *cobra.Command, streams cli.IOStreams, words []string) {
	if strings.HasPrefix(words[0], "-") || len(words) > 1 && child(root, words[0]) != nil {
		return // flags do not stand before a plug-in; or it is a command of kubectl's
	}
	for _, words := range names(root) {
		under := root
		for i, w := range words {
			c := child(under, w)
			if c == nil {
				c = &cobra.Command{
					Use: w, Short: Describe(w), DisableFlagParsing: true, Run: func(*cobra.Command, []string) {},
					ValidArgsFunction: complete(streams, words[:i+1]),
				}
				under.AddCommand(c)
			}
			under = c
		}
	}
	if len(words) > 1 && child(root, words[0]) != nil {
		root.ResetFlags()
	}
}

// child is the command called word directly below c, nil for none.
func child(c *cobra.Command, word string) *cobra.Command {
	at := slices.IndexFunc(c.Commands(), func(sub *cobra.Command) bool {
		return sub.Name() == word || sub.HasAlias(word)
	})
	if at < 0 {
		return nil
	}
	return c.Commands()[at]
}

// complete asks the completer of the plug-in of these words: its lines are what completes, the last one may be ":" and
// cobra's number of what the shell is to do with them. Without a completer, or if it fails, nothing completes.
func complete(streams cli.IOStreams, words []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		path, err := exec.LookPath(completer + fileName(words))
		if err != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		said, err := run(cmd, streams, path, append(slices.Clone(args), begun))
		if err != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var out []cobra.Completion
		for line := range strings.Lines(said) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
		if len(out) > 0 {
			last := len(out) - 1
			if number, ok := strings.CutPrefix(out[last], ":"); ok {
				if n, err := strconv.Atoi(number); err == nil {
					return out[:last], cobra.ShellCompDirective(n)
				}
			}
		}
		return out, cobra.ShellCompDirectiveDefault
	}
}

// run returns what the program at path writes.
func run(cmd *cobra.Command, streams cli.IOStreams, path string, args []string) (string, error) {
	program := exec.CommandContext(cmd.Context(), path, args...)
	program.Stderr = streams.Raw().ErrOut // what a program writes is its own
	out, err := program.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := program.Start(); err != nil {
		return "", err
	}
	var said bytes.Buffer
	_, err = io.Copy(&said, io.LimitReader(out, maxCompletions))
	if failed := program.Wait(); err == nil {
		err = failed
	}
	return said.String(), err
}

// fileName is what the words of a command are in the name of a program.
func fileName(words []string) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = strings.ReplaceAll(w, "-", "_")
	}
	return strings.Join(parts, "-")
}
