package main

import (
	"context"
	"errors"
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
	var upload bool
	create := &cobra.Command{
		Use:     "create [TOKEN]",
		Short:   "Create a bootstrap token and print it",
		Example: "  bonsai token create --print-join-command\n  bonsai token create --upload-certs --print-join-command\n  bonsai token create --ttl 1h --description desk",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Token = args[0]
			}
			config, err := cluster.LoadJoinable(cmd.Context(), chosen.dataDir)
			if err != nil {
				return err
			}
			if upload && o.CertificateKey == "" && !o.PrintJoinCommand {
				return errors.New("--upload-certs: nobody would have the key: add --print-join-command, or give a --certificate-key")
			}
			o.CertificateKey, err = certificateKey(cmd.Context(), chosen.dataDir, o.CertificateKey, upload)
			if err != nil {
				return err
			}
			return join.CreateToken(cmd.Context(), config, o, time.Now(), cmd.OutOrStdout())
		},
	}
	create.Flags().DurationVar(&o.TTL, "ttl", 24*time.Hour, "how long the token is valid; 0: for ever")
	create.Flags().StringVar(&o.Description, "description", "", "what the token is for")
	create.Flags().BoolVar(&o.PrintJoinCommand, "print-join-command", false, "print the join command")
	create.Flags().BoolVar(&upload, "upload-certs", false,
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

// certificateKey returns the key for the printed command, "" for a node alone. With upload it uploads the authorities
// first, with a new key if none is given.
func certificateKey(ctx context.Context, dataDir, given string, upload bool) (string, error) {
	if given == "" && !upload {
		return "", nil
	}
	var key join.CertificateKey
	var err error
	if given == "" {
		key, err = join.NewCertificateKey()
	} else {
		key, err = join.ParseCertificateKey(given)
	}
	if err == nil && upload {
		err = cluster.UploadCertificates(ctx, dataDir, key)
	}
	return key.Text(), err
}
