// Package completion writes the completion scripts of shells.
package completion

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
)

// bashWords takes the place of a function of the script that fails where the package bash-completion is not there: the
// words of the line up to the cursor are then what blanks part, with = and : in them, as that package would give them.
const bashWords = `
__kubectl_init_completion()
{
    COMPREPLY=()
    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local line=${COMP_LINE:0:COMP_POINT}
    read -ra words <<<"$line"
    if [[ $line == *[[:space:]] ]]; then
        words+=("")
    fi
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=${words[cword - 1]}
}
`

// NewCommand returns "kubectl completion".
func NewCommand(_ *cli.Factory, streams cli.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Output shell completion code for the specified shell (bash, zsh, fish, or powershell)",
		Long:      "Output shell completion code for the specified shell (bash, zsh, fish, or powershell). The shell code must be evaluated to provide interactive completion of kubectl commands.",
		Example:   "\n# Load the completion code for bash into the current shell\nsource <(kubectl completion bash)",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				message := "Shell not specified."
				if len(args) > 1 {
					message = "Too many arguments. Expected only the shell type."
				}
				return cli.UsageErrorf(cmd, "%s", message)
			}
			root := cmd.Root()
			switch strings.ToLower(args[0]) {
			case "bash":
				if err := root.GenBashCompletionV2(streams.Raw().Out, true); err != nil {
					return err
				}
				_, err := io.WriteString(streams.Raw().Out, bashWords)
				return err
			case "zsh":
				return root.GenZshCompletion(streams.Raw().Out)
			case "fish":
				return root.GenFishCompletion(streams.Raw().Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(streams.Raw().Out)
			}
			return cli.UsageErrorf(cmd, "Unsupported shell type %q.", args[0])
		},
	}
}
