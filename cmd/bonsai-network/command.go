package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/network/cni"
	"bonsai/pkg/network/nft"
	"bonsai/pkg/network/routes"
)

const component = "bonsai-network"

// options are the flags.
type options struct {
	logging                      daemon.Logging
	kubeconfig, node, cniConfDir string
	ipamPlugin                   string
	clusterCIDRs                 []string
	cleanup                      bool
}

// settings are the flags, checked and parsed.
type settings struct {
	kubeconfig, node string
	conf             cni.Dir
	ipamPlugin       string
	clusterCIDRs     []netip.Prefix
}

func newCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   component,
		Short: "Connect the pods of one node to those of the others",
		Long: "The node's agent of the pod network: it writes the node's CNI network list from its podCIDRs, keeps routes to the pods\n" +
			"of the other nodes, and enforces NetworkPolicies with nftables.",
		Args: daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.logging.Validate(nil, nil); err != nil {
				return err
			}
			log, flush := o.logging.Open(cmd, component)
			defer flush()
			if o.cleanup {
				return cleanup(cmd.Context())
			}
			s, err := o.settings()
			if err != nil {
				return err
			}
			if err := o.logging.Libraries(log); err != nil {
				return err
			}
			return run(cmd.Context(), s, log)
		},
	}
	o.addFlags(cmd.Flags())
	daemon.AddVersion(cmd)
	return cmd
}

// addFlags registers the flags with their defaults.
func (o *options) addFlags(fs *pflag.FlagSet) {
	o.logging.AddFlags(fs)
	fs.StringVar(&o.kubeconfig, "kubeconfig", "",
		"Path to a kubeconfig file, specifying how to connect to the API server.")
	fs.StringVar(&o.node, "node-name", "", "The name of the node that this runs on.")
	fs.StringVar(&o.cniConfDir, "cni-conf-dir", "/etc/cni/net.d",
		"Directory in which the container runtime looks for CNI network lists.")
	fs.StringVar(&o.ipamPlugin, "ipam-plugin", "host-local",
		"The CNI plug-in that assigns pod addresses: host-local, or a plug-in with the same configuration. bonsai-ipam keeps a pod's address when its sandbox is re-created.")
	fs.StringSliceVar(&o.clusterCIDRs, "cluster-cidr", nil,
		"The ranges of pod addresses in the cluster, one per family: no node gets a route to what is outside of them.")
	fs.BoolVar(&o.cleanup, "cleanup", false, "If true remove the agent's routes and nftables tables and exit.")
}

func (o *options) settings() (*settings, error) {
	s := &settings{kubeconfig: o.kubeconfig, node: o.node, conf: cni.Dir(o.cniConfDir), ipamPlugin: o.ipamPlugin}
	var errs []error
	for flag, value := range map[string]string{"--kubeconfig": o.kubeconfig, "--node-name": o.node,
		"--cni-conf-dir": o.cniConfDir, "--ipam-plugin": o.ipamPlugin} {
		if strings.TrimSpace(value) == "" {
			errs = append(errs, fmt.Errorf("%s is required", flag))
		}
	}
	for _, text := range o.clusterCIDRs {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--cluster-cidr: %w", err))
		}
		s.clusterCIDRs = append(s.clusterCIDRs, p.Masked())
	}
	return s, errors.Join(errs...)
}

// cleanup removes what an agent left in the kernel.
func cleanup(ctx context.Context) error {
	return errors.Join(nft.RemovePolicies(ctx), routes.Remove())
}
