package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/testenv"
)

// testenvPatience is how long an environment may take to be ready.
const testenvPatience = time.Minute

func testenvCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "testenv",
		Short: "Run control planes for tests: etcd, API server, controllers and scheduler, without nodes and without root",
		Long: `Run control planes for tests: etcd, API server, controllers and scheduler, without nodes and without root. --name tells them apart. A
reset between tests takes a few milliseconds. Go programs use the package bonsai/pkg/testenv; controller-runtime's envtest uses the
directory that "bonsai testenv assets" prints.`,
		Annotations: map[string]string{anyone: ""},
	}
	named := func(run func(cmd *cobra.Command, dir string, args []string) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			name, err := cmd.Flags().GetString("name")
			if err != nil {
				return err
			}
			dir, err := testenvDir(name)
			if err != nil {
				return err
			}
			return run(cmd, dir, args)
		}
	}
	c.AddCommand(&cobra.Command{
		Use:     "start",
		Short:   "Start an environment in the background and print the path of its kubeconfig",
		Example: "  export KUBECONFIG=$(bonsai testenv start)\n  bonsai testenv start --name other",
		Args:    daemon.NoArgs,
		RunE:    named(startTestenv),
	}, &cobra.Command{
		Use:     "stop",
		Short:   "Stop an environment and remove its files",
		Example: "  bonsai testenv stop",
		Args:    daemon.NoArgs,
		RunE: named(func(cmd *cobra.Command, dir string, _ []string) error {
			found, err := testenv.StopServed(dir)
			if err == nil && !found {
				fmt.Fprintln(cmd.OutOrStdout(), "No such environment: nothing to do.")
			}
			return err
		}),
	}, &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Print the kubeconfig of an environment's administrator",
		Example: "  (umask 077; bonsai testenv kubeconfig > config)",
		Args:    daemon.NoArgs,
		RunE: named(func(cmd *cobra.Command, dir string, _ []string) error {
			env, err := testenv.Open(dir)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(env.KubeconfigPath())
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(data)
			return err
		}),
	}, &cobra.Command{
		Use:     "snapshot NAME",
		Short:   "Save the current objects for later resets",
		Example: "  bonsai testenv snapshot prepared",
		Args:    cobra.ExactArgs(1),
		RunE: named(func(cmd *cobra.Command, dir string, args []string) error {
			env, err := testenv.Open(dir)
			if err != nil {
				return err
			}
			return env.Snapshot(cmd.Context(), args[0])
		}),
	}, &cobra.Command{
		Use:     "reset [SNAPSHOT]",
		Short:   "Reset all objects to the start, or to a snapshot",
		Example: "  bonsai testenv reset\n  bonsai testenv reset prepared",
		Args:    cobra.MaximumNArgs(1),
		RunE: named(func(cmd *cobra.Command, dir string, args []string) error {
			env, err := testenv.Open(dir)
			if err != nil {
				return err
			}
			return env.Reset(cmd.Context(), append(args, "")[0])
		}),
	}, &cobra.Command{
		Use:     "assets",
		Short:   "Print the directory of programs for controller-runtime's envtest",
		Example: "  KUBEBUILDER_ASSETS=$(bonsai testenv assets) go test ./...",
		Args:    daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), filepath.Dir(self))
			}
			return err
		},
	}, &cobra.Command{
		Use:    "serve",
		Hidden: true,
		Args:   daemon.NoArgs,
		RunE: named(func(cmd *cobra.Command, dir string, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return testenv.Serve(cmd.Context(), testenv.Config{BinDir: filepath.Dir(self), Dir: dir})
		}),
	})
	return c
}

// startTestenv runs this program again in the background. The context bounds only the wait. The environment is no child
// of that context, and runs until `bonsai testenv stop`.
func startTestenv(cmd *cobra.Command, dir string, _ []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), testenvPatience,
		fmt.Errorf("not ready after %s", testenvPatience))
	defer cancel()
	if err := testenv.Launch(ctx, dir,
		exec.Command(self, "testenv", "serve", "--name", filepath.Base(dir))); err != nil {
		return err
	}
	env, err := testenv.Open(dir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), env.KubeconfigPath())
	return err
}

// testenvDir is where the user's environment of that name is: below $XDG_RUNTIME_DIR, or the system's directory for
// temporary files, where the directory of environments must be the user's own. Another user could have made the
// directory in /tmp first, and would control what is in it.
func testenvDir(name string) (string, error) {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return "", fmt.Errorf("--name: %q: %s", name, problems[0])
	}
	parent := filepath.Join(os.TempDir(), "bonsai-testenv-"+strconv.Itoa(os.Getuid()))
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" {
		parent = filepath.Join(runtime, "bonsai-testenv")
	}
	if err := os.Mkdir(parent, 0o700); err != nil && !os.IsExist(err) {
		return "", err
	}
	info, err := os.Lstat(parent)
	if err != nil {
		return "", err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(owner.Uid) != os.Getuid() ||
		info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s must be a directory that is yours alone", parent)
	}
	return filepath.Join(parent, name), nil
}
