package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"bonsai/pkg/cluster"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/join"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/programs"
)

func joinCommand(chosen *chosen) *cobra.Command {
	c := &cobra.Command{
		Use:   "join ADDRESS:PORT",
		Short: "Join this machine as a node, or with a control plane, to a cluster on another machine",
		Long: `Join this machine as a node to a cluster on another machine, which was started with --advertise-address. The cluster must prove that it
knows the token and that its authority has the given hash. The kubelet gets its own certificate. On this machine the node has the name
--name: bonsai status, logs, stop, start and down are about it.
With --control-plane the machine also gets an etcd member, an API server, a controller manager and a scheduler. Whoever has the
certificate key and a token is the cluster's administrator.`,
		Example: `  bonsai join 192.0.2.1:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:7c2e69131a36ae2a042a339b33381c6d0d43887e2de83720eff5359e26aec866
  bonsai join 192.0.2.1:6443 --token abcdef.0123456789abcdef --discovery-token-unsafe-skip-ca-verification --node-name desk
  bonsai join 192.0.2.1:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:7c2e69131a36ae2a042a339b33381c6d0d43887e2de83720eff5359e26aec866 --control-plane --certificate-key f8902e114ef118304e561c3ecd4d0b543adc226b7a07f675f56564185ffe0c07`,
		Args: cobra.ExactArgs(1),
	}
	var o join.Options
	var nodeIP, choice string
	c.Flags().StringVar(&o.Token, "token", "", "bootstrap token (bonsai token create)")
	c.Flags().StringSliceVar(&o.CAHashes, "discovery-token-ca-cert-hash", nil,
		"hash of the cluster's authority, as sha256:<hex>; can be given several times")
	c.Flags().BoolVar(&o.UnsafeSkipCAVerification, "discovery-token-unsafe-skip-ca-verification", false,
		"trust whoever knows the token to be the cluster")
	c.Flags().StringVar(&o.NodeName, "node-name", "", "the node's name (default: this machine's)")
	c.Flags().StringVar(&nodeIP, "node-ip", "",
		"this machine's address for the cluster (default: the one by which it reaches the API server)")
	c.Flags().StringToStringVar(&o.Labels, "labels", nil, "labels of the node, as key=value,...")
	c.Flags().BoolVar(&o.ControlPlane, "control-plane", false, "run a control plane on this machine, too")
	c.Flags().StringVar(&o.CertificateKey, "certificate-key", "",
		"key of the cluster's authorities, for --control-plane (bonsai token create --upload-certs --print-join-command)")
	c.Flags().StringVar(&choice, "programs", programs.Bundled, programsUsage)
	patience := waitFlag(c, new(time.Duration), "the node")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		if err := plan.Layout(chosen.dataDir).Check(); err != nil {
			return fmt.Errorf("--data-dir: %w", err)
		}
		o.Server = args[0]
		if nodeIP != "" {
			if o.NodeIP, err = netip.ParseAddr(nodeIP); err != nil {
				return fmt.Errorf("--node-ip: %w", err)
			}
		}
		config := plan.Config{Name: chosen.name, DataDir: chosen.dataDir, BinDir: filepath.Dir(self)}
		if config.Programs, err = parsePrograms(choice); err != nil {
			return err
		}
		if err := usePrograms(config.Programs); err != nil {
			return err
		}
		ctx, cancel := host.WithPatience(cmd.Context(), *patience)
		defer cancel()
		// Everything else about the cluster comes from the cluster itself (join.Cluster.Complete).
		config, err = cluster.Join(ctx, chosen.home, config, o, self, cmd.OutOrStdout())
		if err != nil {
			return err
		}
		return sayJoined(cmd, config)
	}
	return c
}

func sayJoined(cmd *cobra.Command, config plan.Config) error {
	with := ""
	if config.HasControlPlane() {
		with = " with a control plane"
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "This machine is the node %s%s of the cluster at %s, and Ready.\n",
		config.Nodes[0].Name(), with, config.Joined.Server)
	return err
}
