package daemon

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Version is the Kubernetes version whose API and behaviour the components follow; GitVersion adds our own name to it.
const (
	Version    = "v1.36.3"
	GitVersion = Version + "+bonsai"
)

// AddVersion gives cmd upstream's --version flag: print "Kubernetes v1.36.3+bonsai" and exit.
func AddVersion(cmd *cobra.Command) {
	cmd.Version = GitVersion
	cmd.SetVersionTemplate(fmt.Sprintf("Kubernetes %s\n", GitVersion))
}
