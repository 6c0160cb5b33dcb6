// Command kubectl controls a cluster from the command line.
package main

import (
	"context"
	"os"

	"k8s.io/klog/v2"

	"bonsai/pkg/kubectl"
	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/redact"
)

// version is the Kubernetes version kubectl follows, with our own name.
const version = "v1.36.3+bonsai"

func main() {
	collectLate()
	klog.EnableContextualLogging(false) // client-go's logs of requests (-v) go to klog itself
	klog.SetLogFilter(redact.Filter{})
	os.Exit(untilSignal(cli.WithSerial(context.Background(), oneProcessor), func(ctx context.Context) int {
		return kubectl.Main(ctx, version, os.Args[1:], cli.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	}))
}
