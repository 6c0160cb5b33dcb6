// Command kubelet runs the pods of one node: it registers the node, watches the API server and a directory for pods,
// and has the container runtime run them.
package main

import (
	"os"

	"bonsai/cmd/internal/daemon"
)

func main() { os.Exit(daemon.Main(newCommand())) }
