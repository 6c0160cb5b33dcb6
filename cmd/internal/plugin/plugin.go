// Package plugin has what the mains of kubectl's plug-ins share.
package plugin

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// Main calls run with a context that SIGINT and SIGTERM end, and ends the process with the code that run returns. A
// second signal ends the process at once.
func Main(run func(context.Context) int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the first signal's handler is gone when a second one comes
	os.Exit(run(ctx))
}

// Columns returns the width of the terminal that f is, 0 if it is none.
func Columns(f *os.File) int {
	if !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	const usual = 80
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return usual
	}
	return width
}
