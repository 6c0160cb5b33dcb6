// Package completion writes the completion scripts of shells.
package completion

import (
	"strings"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
)

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
				return root.GenBashCompletionV2(streams.Raw().Out, true)
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
