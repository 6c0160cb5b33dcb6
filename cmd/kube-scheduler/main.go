// Command kube-scheduler assigns pods that have no node to nodes.
package main

import (
	"os"

	"bonsai/cmd/internal/daemon"
)

func main() { os.Exit(daemon.Main(newCommand())) }
