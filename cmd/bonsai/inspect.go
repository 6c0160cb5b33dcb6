package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/cluster"
)

func statusCommand(chosen *chosen) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show the cluster's processes",
		Example: "  bonsai status",
		Args:    daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cluster.PrintStatus(cmd.Context(), chosen.dataDir, cmd.OutOrStdout())
		},
	}
}

func logsCommand(chosen *chosen) *cobra.Command {
	c := &cobra.Command{
		Use:     "logs [PROCESS]",
		Short:   "Print a process's log, or list the processes that have one",
		Example: "  bonsai logs\n  bonsai logs -f kube-apiserver",
		Args:    cobra.MaximumNArgs(1),
	}
	follow := c.Flags().BoolP("follow", "f", false, "go on printing what is written")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			fmt.Fprintln(cmd.OutOrStdout(), strings.Join(cluster.LogNames(chosen.dataDir), "\n"))
			return nil
		}
		err := cluster.PrintLog(cmd.Context(), chosen.dataDir, args[0], *follow, cmd.OutOrStdout())
		if *follow && cmd.Context().Err() != nil {
			return nil // the user ended it
		}
		return err
	}
	return c
}

func execCommand(chosen *chosen) *cobra.Command {
	return &cobra.Command{
		Use:     "exec NODE -- COMMAND [ARG...]",
		Short:   "Run a command inside a node's namespaces",
		Example: "  bonsai exec n1 -- nft list ruleset",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			pid, err := cluster.NodePID(cmd.Context(), chosen.dataDir, args[0])
			if err != nil {
				return err
			}
			enter, err := exec.LookPath("nsenter")
			if err != nil {
				return err
			}
			argv := append([]string{enter, "-t", strconv.Itoa(pid), "-m", "-u", "-i", "-n", "-p", "-C", "--"}, args[1:]...)
			return unix.Exec(enter, argv, os.Environ())
		},
	}
}
