package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"bonsai/api/kubeversion"
	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/cluster"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/logs"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

func statusCommand(chosen *chosen) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show the cluster's processes, the resources that they use, and the state of its nodes and pods",
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
		Example: "  bonsai logs\n  bonsai logs -f kube-apiserver\n  bonsai logs kubelet --node n1 --tail 100 --since 10m",
		Args:    cobra.MaximumNArgs(1),
	}
	var o supervise.LogOptions
	c.Flags().BoolVarP(&o.Follow, "follow", "f", false, "print new lines as they are written")
	node := c.Flags().String("node", "", "the node, for a process that runs on nodes")
	c.Flags().IntVar(&o.Tail, "tail", -1, "number of last lines; negative: all")
	since := c.Flags().Duration("since", 0, "only lines newer than this, for example 10m; 0: all")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *since < 0 {
			return errors.New("--since: must not be negative")
		}
		if len(args) == 0 {
			names, err := logs.Names(plan.Layout(chosen.dataDir))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.Join(names, "\n"))
			return err
		}
		if *since > 0 {
			o.Since = time.Now().Add(-*since)
		}
		err := logs.Print(cmd.Context(), plan.Layout(chosen.dataDir), args[0], *node, o, cmd.OutOrStdout())
		if o.Follow && cmd.Context().Err() != nil {
			return nil // the user ended it
		}
		return err
	}
	return c
}

func exportCommand(chosen *chosen) *cobra.Command {
	c := &cobra.Command{Use: "export", Short: "Export a cluster for a bug report"}
	c.AddCommand(&cobra.Command{
		Use:     "logs DIRECTORY",
		Short:   "Write logs, configuration and state, without keys, certificates and kubeconfigs, into a new directory",
		Example: "  bonsai export logs report",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cluster.ExportLogs(cmd.Context(), chosen.dataDir, args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(),
				"Written to %s. What containers and events say is in it: look before you give it away.\n", args[0])
			return err
		},
	})
	return c
}

func kubeconfigCommand(chosen *chosen) *cobra.Command {
	c := &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Print the administrator's kubeconfig",
		Example: "  (umask 077; bonsai kubeconfig > kubeconfig)",
		Args:    daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cluster.PrintKubeconfig(chosen.dataDir, cmd.OutOrStdout())
		},
	}
	c.AddCommand(&cobra.Command{
		Use:     "export",
		Short:   "Add the cluster's context to your kubeconfig ($KUBECONFIG or ~/.kube/config) and make it the current context",
		Example: "  bonsai kubeconfig export",
		Args:    daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := datadir.LoadControlPlane(chosen.dataDir)
			if err != nil {
				return err
			}
			return kubeconfig.Export(cmd.Context(), config, cmd.ErrOrStderr())
		},
	})
	return c
}

func execCommand(chosen *chosen) *cobra.Command {
	c := &cobra.Command{
		Use:     "exec NODE -- COMMAND [ARG...]",
		Short:   "Run a command inside a node's namespaces",
		Example: "  bonsai exec n1 -- nft list ruleset\n  bonsai exec -it n1 -- bash",
		Args:    cobra.MinimumNArgs(2),
	}
	stdin := c.Flags().BoolP("stdin", "i", false, "pass standard input to the command")
	tty := c.Flags().BoolP("tty", "t", false, "require that standard input is a terminal (with --stdin)")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w (flags of COMMAND come after two dashes: bonsai exec NODE -- COMMAND [ARG...])", err)
	})
	c.RunE = func(cmd *cobra.Command, args []string) error {
		pid, err := cluster.NodePID(cmd.Context(), chosen.dataDir, args[0])
		if err != nil {
			return err
		}
		enter, err := exec.LookPath("nsenter")
		if err != nil {
			return err
		}
		if *tty {
			if _, err := unix.IoctlGetTermios(unix.Stdin, unix.TCGETS); err != nil {
				return errors.New("--tty: standard input is no terminal")
			}
		}
		// Without -i the command reads nothing, as kubectl exec has it.
		if !*stdin {
			null, err := os.Open(os.DevNull)
			if err != nil {
				return err
			}
			if err := unix.Dup3(int(null.Fd()), unix.Stdin, 0); err != nil {
				return err
			}
		}
		// nsenter replaces this process, so the command's exit code is this command's own. All of the node's namespaces
		// are entered: mounts, host name, IPC, network, PIDs and cgroups.
		argv := append([]string{enter, "-t", strconv.Itoa(pid), "-m", "-u", "-i", "-n", "-p", "-C", "--"}, args[1:]...)
		return unix.Exec(enter, argv, os.Environ())
	}
	return c
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:         "version",
		Short:       "Print the versions of Bonsai and of the programs that it uses",
		Example:     "  bonsai version",
		Args:        daemon.NoArgs,
		Annotations: map[string]string{anyone: ""},
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "bonsai       %s (%s, %s/%s)\n", kubeversion.Git, runtime.Version(),
				runtime.GOOS, runtime.GOARCH)
			return cluster.PrintVersions(cmd.Context(), filepath.Dir(self), cmd.OutOrStdout())
		},
	}
}
