package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/cluster"
	"bonsai/pkg/cluster/join"
)

func tokenCommand(chosen *chosen) *cobra.Command {
	token := &cobra.Command{Use: "token",
		Short: "Create, list and delete bootstrap tokens, with which other machines join"}
	var o join.TokenOptions
	create := &cobra.Command{
		Use:     "create [TOKEN]",
		Short:   "Create a bootstrap token and print it",
		Example: "  bonsai token create --print-join-command\n  bonsai token create --upload-certs --print-join-command\n  bonsai token create --ttl 1h --description desk",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Token = args[0]
			}
			token, err := o.Check()
			if err != nil {
				return err
			}
			config, err := cluster.LoadJoinable(cmd.Context(), chosen.dataDir)
			if err != nil {
				return err
			}
			return token.Create(cmd.Context(), config, func(ctx context.Context, key join.CertificateKey) error {
				return cluster.UploadCertificates(ctx, chosen.dataDir, key)
			}, time.Now(), cmd.OutOrStdout())
		},
	}
	create.Flags().DurationVar(&o.TTL, "ttl", 24*time.Hour, "how long the token is valid; 0: for ever")
	create.Flags().StringVar(&o.Description, "description", "", "what the token is for")
	create.Flags().BoolVar(&o.PrintJoinCommand, "print-join-command", false, "print the join command")
	create.Flags().BoolVar(&o.UploadCertificates, "upload-certs", false,
		"let machines join with control planes: upload the cluster's authorities, encrypted, into the Secret kube-system/kubeadm-certs for two hours")
	create.Flags().StringVar(&o.CertificateKey, "certificate-key", "",
		"key of the authorities: with --print-join-command, the command is for a control plane; with --upload-certs, they are encrypted with it (default: a new key)")
	token.AddCommand(create,
		&cobra.Command{
			Use:     "list",
			Short:   "List the bootstrap tokens of the cluster",
			Example: "  bonsai token list",
			Args:    daemon.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				config, err := cluster.LoadJoinable(cmd.Context(), chosen.dataDir)
				if err != nil {
					return err
				}
				return join.ListTokens(cmd.Context(), config, time.Now(), cmd.OutOrStdout())
			},
		},
		&cobra.Command{
			Use:     "delete TOKEN",
			Short:   "Delete a bootstrap token, given in full or by its ID",
			Example: "  bonsai token delete abcdef",
			Args:    cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				config, err := cluster.LoadJoinable(cmd.Context(), chosen.dataDir)
				if err != nil {
					return err
				}
				return join.DeleteToken(cmd.Context(), config, args[0], cmd.OutOrStdout())
			},
		})
	return token
}
