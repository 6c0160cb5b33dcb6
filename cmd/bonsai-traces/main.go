// Command bonsai-traces keeps a cluster's newest traces. It takes spans by OTLP on a socket, and serves them as the
// API group traces.bonsai.io behind the aggregator.
package main

import (
	"os"

	"bonsai/cmd/internal/daemon"
)

func main() { os.Exit(daemon.Main(newCommand())) }
