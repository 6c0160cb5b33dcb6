package daemon

import (
	"fmt"

	"github.com/spf13/cobra"

	"bonsai/api/kubeversion"
)

// AddVersion gives cmd, whose RunE is set, upstream's --version flag: it prints "Kubernetes VERSION" and exits. Cobra's
// own flag of that name would need a template for this line. A binary in which templates can run keeps every exported
// method of every type, since a template may call it by name: 10 to 20 % of each of ours.
func AddVersion(cmd *cobra.Command) {
	run, show := cmd.RunE, cmd.Flags().Bool("version", false, "print version information and quit")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *show {
			fmt.Fprintf(cmd.OutOrStdout(), "Kubernetes %s\n", kubeversion.Git)
			return nil
		}
		return run(cmd, args)
	}
}
