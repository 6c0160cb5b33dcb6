package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// Group is the RunE of a command that only has subcommands: it refuses a subcommand it does not have, and without any
// it shows the help on the error stream and fails.
func Group(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageErrorf(cmd, "unknown command %q", strings.Join(args, " "))
	}
	cmd.SetOut(cmd.ErrOrStderr())
	if err := cmd.Help(); err != nil {
		return err
	}
	return Silent()
}
