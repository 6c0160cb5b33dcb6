package daemon

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Version is the Kubernetes version whose API and behaviour the components follow; GitVersion adds our own name to it.
const (
	Version    = "v1.36.3"
	GitVersion = Version + "+bonsai"
	// Emulation is the minor version that they behave as.
	Emulation = "1.36"
)

// AddVersion gives cmd, whose RunE is set, upstream's --version flag: print "Kubernetes v1.36.3+bonsai" and exit. Cobra's own flag of that
// name would need a template for this line, and a binary in which templates can run keeps every exported method of every type, as a
// template may call it by its name: 10 to 20 % of each of ours.
func AddVersion(cmd *cobra.Command) {
	run, show := cmd.RunE, cmd.Flags().Bool("version", false, "print version information and quit")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *show {
			fmt.Fprintf(cmd.OutOrStdout(), "Kubernetes %s\n", GitVersion)
			return nil
		}
		return run(cmd, args)
	}
}
