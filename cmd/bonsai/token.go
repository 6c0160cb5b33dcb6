package main

import (
	"time"

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/cluster"
)

func tokenCommand(chosen *chosen) *cobra.Command {
	token := &cobra.Command{Use: "token",
		Short: "Make, show and delete the bootstrap tokens with which other machines join the cluster"}
	var o cluster.TokenOptions
	create := &cobra.Command{
		Use:     "create [TOKEN]",
		Short:   "Make a bootstrap token, and print it",
		Example: "  bonsai token create --print-join-command\n  bonsai token create --ttl 1h --description desk",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Token = args[0]
			}
			return cluster.CreateToken(cmd.Context(), chosen.dataDir, o, time.Now(), cmd.OutOrStdout())
		},
	}
	create.Flags().DurationVar(&o.TTL, "ttl", 24*time.Hour, "how long machines can join with it; 0 is for ever")
	create.Flags().StringVar(&o.Description, "description", "", "what it is for")
	create.Flags().BoolVar(&o.PrintJoinCommand, "print-join-command", false, "print the command that joins with it")
	token.AddCommand(create,
		&cobra.Command{
			Use:     "list",
			Short:   "Show the bootstrap tokens of the cluster",
			Example: "  bonsai token list",
			Args:    daemon.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return cluster.ListTokens(cmd.Context(), chosen.dataDir, time.Now(), cmd.OutOrStdout())
			},
		},
		&cobra.Command{
			Use:     "delete TOKEN",
			Short:   "Delete a bootstrap token, by the whole of it or its id: nobody joins with it any more",
			Example: "  bonsai token delete abcdef",
			Args:    cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return cluster.DeleteToken(cmd.Context(), chosen.dataDir, args[0], cmd.OutOrStdout())
			},
		})
	return token
}
