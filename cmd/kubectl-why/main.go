// Command kubectl-why explains why something in a cluster is as it is. It is a plug-in of kubectl, any make and version
// of it: a file of this name in $PATH is run as "kubectl why". It only reads, so it works with any cluster.
package main

import (
	"context"
	"os"
	"time"

	"bonsai/cmd/internal/plugin"
	"bonsai/pkg/kubectl/cli"
)

func main() {
	plugin.Main(func(ctx context.Context) int {
		return run(ctx, os.Args[1:], terminal{cli.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
			plugin.Columns(os.Stdout), os.Getenv("NO_COLOR") == "", time.Now})
	})
}
