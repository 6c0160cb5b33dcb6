// Command kube-controller-manager runs the control loops of the cluster: each watches the API server and moves the
// state that is towards the state that is wanted.
package main

import (
	"os"
	_ "time/tzdata" // for cron jobs' time zones where the machine has no database of them

	"bonsai/cmd/internal/daemon"
)

func main() { os.Exit(daemon.Main(newCommand())) }
