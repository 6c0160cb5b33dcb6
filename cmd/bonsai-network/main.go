// Command bonsai-network is a node's agent of the pod network, which Kubernetes leaves to network plug-ins: it tells
// the container runtime how pods are connected, keeps the routes to other nodes' pods, and enforces NetworkPolicies.
package main

import (
	"os"

	"bonsai/cmd/internal/daemon"
)

func main() { os.Exit(daemon.Main(newCommand())) }
