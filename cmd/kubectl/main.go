// Command kubectl controls a cluster from the command line.
package main

import (
	"context"
	"os"

	"k8s.io/klog/v2"

	"bonsai/api/kubeversion"
	"bonsai/pkg/kubectl"
	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/redact"
)

func main() {
	collectLate()
	klog.EnableContextualLogging(false) // client-go's logs of requests (-v) go to klog itself
	klog.SetLogFilter(redact.Filter{})
	os.Exit(untilSignal(cli.WithSerial(context.Background(), oneProcessor), func(ctx context.Context) int {
		return kubectl.Main(ctx, kubeversion.Git, os.Args[1:],
			cli.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	}))
}
