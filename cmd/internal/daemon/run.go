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
func Main(cmd *cobra.Command) int {
	ctx, stop := signalContext()
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

// signalContext is cancelled by the first SIGTERM or SIGINT; the second ends the process.
func signalContext() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals, stopped := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-stopped:
			return
		}
		select {
		case <-signals:
			os.Exit(1)
		case <-stopped:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
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
