// Package apiversions lists the server's API versions.
package apiversions

import (
	"fmt"
	"sort"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubectl/cli"
)

// NewCommand returns "kubectl api-versions".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:                   "api-versions",
		DisableFlagsInUseLine: true,
		Example:               "# The group versions that the server has\nkubectl api-versions",
		Short:                 `Print the supported API versions on the server, in the form of "group/version"`,
		Long:                  `Print the supported API versions on the server, in the form of "group/version".`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UsageErrorf(cmd, "unexpected arguments: %v", args)
			}
			d, err := f.Discovery()
			if err != nil {
				return err
			}
			d.Invalidate()
			groups, err := d.ServerGroups()
			if err != nil {
				return fmt.Errorf("couldn't get available api versions from server: %w", err)
			}
			versions := metav1.ExtractGroupVersions(groups)
			sort.Strings(versions)
			for _, v := range versions {
				fmt.Fprintln(streams.Out, v)
			}
			return nil
		},
	}
}
