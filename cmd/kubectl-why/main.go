// Command kubectl-why explains why something in a cluster is as it is. It is a plug-in of kubectl, any make and version
// of it: a file of this name in $PATH is run as "kubectl why". It only reads, so it works with any cluster.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"bonsai/pkg/kubectl/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop() // a second signal ends the process: the first one's handler is gone by then
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], terminal{cli.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		columns(os.Stdout), os.Getenv("NO_COLOR") == "", time.Now}))
}

// columns returns the width of the terminal that f is, 0 if it is none.
func columns(f *os.File) int {
	if !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 80
	}
	return width
}
