// Command kube-proxy makes Services work on one node: it watches Services and EndpointSlices and writes packet filter
// rules.
package main

import (
	"os"

	"bonsai/cmd/internal/daemon"
)

func main() { os.Exit(daemon.Main(newCommand())) }
