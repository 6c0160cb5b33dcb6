package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/cluster"
)

func checkCommand(chosen *chosen) *cobra.Command {
	var f upFlags
	c := &cobra.Command{
		Use:   "check",
		Short: "Compare this machine with what a cluster needs, and print every finding",
		Long: `Compare this machine with what a cluster needs: kernel, cgroups, settings, programs, disk, memory, firewalls.
The flags describe the cluster, as those of up do. Each finding is one of

  ok       the machine has it
  note     only a few pods need it, and the machine lacks it
  warning  pods may fail without it; up prints it, too
  missing  no cluster starts without it; up refuses with the same text

Findings name the command that mends them. It loads kernel modules that a cluster uses, and changes nothing else. The
exit code is 1 if something is missing, otherwise 0.`,
		Example: `  bonsai check
  bonsai check --nodes 3 --ip-family dual
  bonsai check --data-dir /srv/bonsai`,
		Args: daemon.NoArgs,
	}
	f.describe(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		config, err := f.config(cmd, chosen, filepath.Dir(self), changeNothing)
		if err != nil {
			return err
		}
		if err := usePrograms(config.Programs); err != nil {
			return err
		}
		ready, err := cluster.PrintCheck(cmd.Context(), config, cmd.OutOrStdout())
		if err == nil && !ready {
			err = errors.New("this machine lacks what a cluster needs: see the lines with \"missing\"")
		}
		return err
	}
	return c
}

// changeNothing prepares a data directory for a look at it.
func changeNothing(context.Context, string) error { return nil }
