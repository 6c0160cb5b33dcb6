// Command bonsai runs whole local clusters: up, down, list, status, logs, exec into a node, images, and more.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"bonsai/api/kubeversion"
	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/cluster"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host/door"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/programs"
	"bonsai/pkg/cluster/rootless"
)

func main() {
	// A command that knows its cluster chooses the programs again.
	if err := errors.Join(rootless.Arrive(), usePrograms("")); err != nil {
		fmt.Fprintln(os.Stderr, "bonsai:", err)
		os.Exit(1)
	}
	// Pods of any user read what containerd and the kubelet write, whatever the mask of the user who starts the
	// cluster. A file that others must not read is made with its own mode.
	syscall.Umask(0o022)
	os.Exit(daemon.Main(command(), syscall.SIGHUP)) // the terminal of a command may close while it is at work
}

// usePrograms has this process and its children find the programs that a cluster executes: the bundled ones before the
// machine's, or the machine's alone.
func usePrograms(choice string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return os.Setenv("PATH", programs.SearchPath(os.Getenv("PATH"), filepath.Dir(self), choice))
}

// chosen is the cluster that a command is about.
type chosen struct {
	home    machine.Home // $BONSAI_HOME or the default
	name    string       // --name
	named   bool         // --name was given
	dataDir string       // --data-dir or $BONSAI_DATA; resolve fills in what follows from the name
	placed  bool         // one of them was given
}

// anyone marks the commands that need no root and no cluster.
const anyone = "anyone"

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "bonsai",
		Short: "Run small Kubernetes clusters of real processes on this machine",
		Example: `  bonsai up
  bonsai up --name dev --nodes 3
  bonsai list
  bonsai down --name dev`,
	}
	c := &chosen{home: machine.Home(cmp.Or(os.Getenv("BONSAI_HOME"), string(machine.DefaultHome))),
		dataDir: os.Getenv("BONSAI_DATA")}
	root.PersistentFlags().StringVar(&c.name, "name", plan.DefaultName,
		"name of the cluster, one of several on this machine")
	root.PersistentFlags().StringVar(&c.dataDir, "data-dir", c.dataDir,
		"directory that holds everything the cluster writes (default: by its name, below $BONSAI_HOME or "+
			string(machine.DefaultHome)+"; without root $XDG_DATA_HOME or ~/.local/share)")
	// cobra runs only the nearest PersistentPreRunE, so no command below may have one of its own: resolve would not
	// run.
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return c.resolve(cmd) }
	// Commands that do one thing are interruptible. Those of the second list run until a signal ends them, become
	// another process, or are internal.
	root.AddCommand(interruptible(upCommand(c), downCommand(c), checkCommand(c), listCommand(c), configCommand(),
		stopCommand(c), startCommand(c), restartCommand(c), pauseCommand(c), resumeCommand(c),
		nodeCommand(c), snapshotCommand(c), defragmentCommand(c), encryptionCommand(c), tokenCommand(c),
		joinCommand(c), statusCommand(c), exportCommand(c), kubeconfigCommand(c), imageCommand(c),
		testenvCommand(), versionCommand())...)
	root.AddCommand(consoleCommand(), tourCommand(), dnsCommand(c), logsCommand(c), execCommand(c),
		superviseCommand(c), nodeEnterCommand(), nodeInitCommand(), memberEnterCommand(), balanceCommand(),
		containerizedCommand(c), rootlessKeepCommand(), rootlessBeginCommand(), rootlessInitCommand())
	root.Version = kubeversion.Git
	root.InitDefaultCompletionCmd()
	strict(root.Commands()...)
	return root
}

// strict has commands that hold others refuse a word that is none of them, where cobra shows their help and calls that
// a success. A command that does something itself, as kubeconfig does, goes on doing it.
func strict(commands ...*cobra.Command) {
	for _, c := range commands {
		strict(c.Commands()...)
		if c.HasSubCommands() {
			c.Args, c.DisableFlagsInUseLine = cobra.NoArgs, true
			if !c.Runnable() {
				c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
				c.Annotations = map[string]string{onlyHelps: ""}
			}
		}
	}
}

// onlyHelps marks commands that show their help and do nothing else.
const onlyHelps = "only-helps"

// interruptible has commands, and those below them, fail when a signal ended them before they had done what they are
// for. The others run until a signal ends them, which is no failure.
func interruptible(commands ...*cobra.Command) []*cobra.Command {
	for _, c := range commands {
		interruptible(c.Commands()...)
		if run := c.RunE; run != nil {
			c.RunE = func(cmd *cobra.Command, args []string) error {
				err := run(cmd, args)
				if err != nil && errors.Is(cmd.Context().Err(), context.Canceled) {
					// not wrapped: daemon.Main takes the end of a context for a clean one
					return fmt.Errorf("interrupted: %s", err)
				}
				return err
			}
		}
	}
	return commands
}

// resolve makes sure that the user may do what the command does, and finds the cluster's data directory.
//
// It runs before every command, after cobra has parsed the flags. It takes no lock and changes nothing.
func (c *chosen) resolve(cmd *cobra.Command) error {
	if _, ok := cmd.Annotations[onlyHelps]; ok {
		return nil
	}
	for at := cmd; at != nil; at = at.Parent() {
		if _, ok := at.Annotations[anyone]; ok || at.Name() == "help" || at.Name() == "completion" ||
			at.Name() == cobra.ShellCompRequestCmd {
			return nil
		}
	}
	if err := plan.CheckName(c.name); err != nil {
		return fmt.Errorf("--name: %w", err)
	}
	// A relative path means another directory to each process with a working directory of its own.
	if !filepath.IsAbs(string(c.home)) {
		return fmt.Errorf("$BONSAI_HOME: must be an absolute path, not %q", c.home)
	}
	if os.Geteuid() != 0 {
		return c.enter(cmd)
	}
	if door.IsInside() {
		if err := refuseRootless(cmd); err != nil {
			return err
		}
	}
	c.named, c.placed = cmd.Flags().Changed("name"), c.dataDir != ""
	from := "$BONSAI_DATA"
	switch {
	case cmd.Flags().Changed("data-dir"):
		// An empty one is wrong, as that of a variable that is not set: the default cluster would answer for it.
		c.placed, from = true, "--data-dir"
	case !c.placed:
		c.dataDir, from = c.home.DataDir(c.name), "$BONSAI_HOME"
	}
	var err error
	if c.dataDir, err = datadir.Resolve(c.dataDir); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	// These are about a cluster where it belongs, and find out who has its name.
	if !c.placed && cmd.Name() != "up" && cmd.Name() != "join" && cmd.Name() != "check" {
		if c.dataDir, err = cluster.Find(c.home, c.name); err != nil {
			return err
		}
	}
	config, err := datadir.Load(c.dataDir)
	if err != nil {
		return nil // the command says so, if it needs the cluster
	}
	return usePrograms(config.Programs)
}
