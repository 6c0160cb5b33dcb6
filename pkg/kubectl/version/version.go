// Package version prints the versions of kubectl and of the server.
package version

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/kustomization"
)

// versions is what -o json prints.
type versions struct {
	ClientVersion    *version.Info `json:"clientVersion,omitempty"`
	KustomizeVersion string        `json:"kustomizeVersion,omitempty"`
	ServerVersion    *version.Info `json:"serverVersion,omitempty"`
}

// NewCommand returns "kubectl version".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	var clientOnly bool
	var output string
	cmd := &cobra.Command{
		Use:     "version [flags]",
		Example: "# The versions of kubectl and of the server\nkubectl version\n\n# That of kubectl alone\nkubectl version --client",
		Short:   "Print the client and server version information",
		Long:    "Print the client and server version information for the current context.",
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return fmt.Errorf("extra arguments: %v", args)
			case output != "" && output != "json" && output != "yaml":
				return fmt.Errorf("--output must be 'yaml' or 'json'")
			}
			v := versions{ClientVersion: client(f.Version), KustomizeVersion: kustomization.Version}
			var err error
			if !clientOnly {
				v.ServerVersion, err = server(f)
			}
			if e := v.print(streams, output); e != nil {
				return e
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "If true, shows client version only (no server required).")
	cmd.Flags().StringVarP(&output, "output", "o", "", "One of 'yaml' or 'json'.")
	return cmd
}

func client(v string) *version.Info {
	parts := strings.SplitN(strings.TrimPrefix(v, "v"), ".", 3)
	info := &version.Info{GitVersion: v, GoVersion: runtime.Version(), Compiler: runtime.Compiler,
		Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if len(parts) == 3 {
		info.Major, info.Minor = parts[0], parts[1]
	}
	return info
}

func server(f *cli.Factory) (*version.Info, error) {
	d, err := f.Discovery()
	if err != nil {
		return nil, err
	}
	return d.ServerVersion()
}

func (v versions) print(streams cli.IOStreams, output string) error {
	switch output {
	case "json":
		data, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(streams.Raw().Out, "%s\n", data)
		return err
	case "yaml":
		data, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(streams.Raw().Out, "%s\n", data)
		return err
	}
	fmt.Fprintf(streams.Out, "Client Version: %s\n", v.ClientVersion.GitVersion)
	fmt.Fprintf(streams.Out, "Kustomize Version: %s\n", v.KustomizeVersion)
	if v.ServerVersion != nil {
		fmt.Fprintf(streams.Out, "Server Version: %s\n", v.ServerVersion.GitVersion)
	}
	return nil
}
