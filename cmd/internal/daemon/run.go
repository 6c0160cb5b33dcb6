// Package daemon is what the mains of the long-running components share: signals and exit codes, logging flags, the
// health and metrics server, and reading a kubeconfig.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs cmd with a context that ends at the first SIGTERM or SIGINT and returns the process's exit code: 0 after a
// clean end, 1 after an error, which is printed to stderr. A second signal exits at once with code 1. An error that
// says that a context was canceled is a clean end if a signal came: without one, the command gave up waiting for
// something.
//
// hangups are signals that end the context, too, such as SIGHUP for a command that a person runs. Without them SIGHUP
// ends the process at once, as upstream's components.
func Main(cmd *cobra.Command, hangups ...os.Signal) int {
	ctx, stop := signalContext(hangups)
	defer stop()
	cmd.SilenceUsage = true
	cmd.SilenceErrors = true
	go settle(ctx)
	if err := cmd.ExecuteContext(ctx); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		fmt.Fprintf(os.Stderr, "%s: error: %v\n", cmd.Name(), err)
		return 1
	}
	return 0
}

// signalContext is cancelled by the first SIGTERM, SIGINT or hangup. A second SIGTERM or SIGINT ends the process.
//
// A hangup is never a second signal: when a terminal closes, its shell and the kernel each send one. One that the
// process was started to ignore, as by nohup, stays ignored.
func signalContext(hangups []os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals, hungUp, stopped := make(chan os.Signal, 2), make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	for _, s := range hangups {
		if !signal.Ignored(s) {
			signal.Notify(hungUp, s)
		}
	}
	broken := make(chan os.Signal, 1)
	go func() {
		select {
		case <-signals:
		case <-hungUp:
		case <-stopped:
			return
		}
		// The terminal, or the program at the other end of a pipe, may have ended by the same signal. What the command
		// says while it tidies up is then lost, and must not end it (os/signal, SIGPIPE).
		signal.Notify(broken, syscall.SIGPIPE)
		cancel()
		select {
		case <-signals:
			os.Exit(1)
		case <-stopped:
		}
	}()
	return ctx, func() {
		for _, c := range []chan os.Signal{signals, hungUp, broken} {
			signal.Stop(c)
		}
		close(stopped)
		cancel()
	}
}

// NoArgs refuses positional arguments with the message that upstream's components print.
func NoArgs(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		if arg != "" {
			return fmt.Errorf("%q does not take any arguments, got %q", cmd.CommandPath(), args)
		}
	}
	return nil
}
