// Command kubectl controls a cluster from the command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"bonsai/pkg/kubectl"
	"bonsai/pkg/kubectl/cli"
)

// version is the Kubernetes version kubectl follows, with our own name.
const version = "v1.36.3+bonsai"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	os.Exit(kubectl.Main(ctx, version, os.Args[1:], cli.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}
