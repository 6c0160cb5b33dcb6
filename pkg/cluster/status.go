package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/etcd"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/status"
	"bonsai/pkg/cluster/supervise"
)

// PrintStatus prints every process of the cluster in dataDir, whether the API server answers, and what it reports of
// the nodes. It returns an error unless all of the cluster is up and has room on its disk and in etcd.
func PrintStatus(ctx context.Context, dataDir string, out io.Writer) error {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return err
	}
	if paused(c) || !running(ctx, c) {
		return notRunning(c)
	}
	err = status.Print(ctx, c, out, func(context.Context) []error {
		if err := machine.CheckRunningSpace(c); err != nil {
			return []error{err}
		}
		return nil
	}, func(ctx context.Context) []error { return etcd.Full(ctx, c) })
	return errors.Join(err, printMembers(ctx, c, out))
}

// PrintList prints the clusters of this machine, one on a line.
func PrintList(ctx context.Context, home machine.Home, out io.Writer) error {
	all, err := Clusters(home)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(out, "No clusters (bonsai up).")
		return nil
	}
	if err := status.PrintList(all, func(c plan.Config) string { return state(ctx, c) }, out); err != nil {
		return err
	}
	if _, err := kubeconfig.User(); err != nil {
		fmt.Fprintf(out, "Stopped clusters that are neither in %s nor in their usual place are missing here: %v\n",
			home, err)
	}
	return nil
}

// state returns a word for what a cluster does. A supervisor is asked for two seconds at most, so a hanging one does
// not stop the list.
func state(ctx context.Context, c plan.Config) string {
	switch {
	case paused(c):
		return "paused"
	case running(ctx, c):
		return "running"
	}
	return "stopped"
}

// NodePID returns the pid of the init process of a node of the cluster in dataDir. Its namespaces are the node's. It
// is an error if the node's control socket does not answer, which it does once the node has its own files. The pid is
// good for a moment only: the node may end, and the supervisor starts it again with another one.
func NodePID(ctx context.Context, dataDir, node string) (int, error) {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return 0, err
	}
	if paused(c) {
		return 0, notRunning(c)
	}
	supervisor, err := supervise.Ask(ctx, c.Layout().Socket("supervisor"))
	if err != nil {
		return 0, notRunning(c)
	}
	for _, p := range supervisor.Processes {
		if p.Name != "node-"+node || p.PID == 0 {
			continue
		}
		// Until the socket answers, the mount namespace may show the host's files: a command would change those.
		if _, err := supervise.Ask(ctx, c.Layout().NodeSocket(node)); err != nil {
			return 0, fmt.Errorf("node %s is starting (bonsai logs node-%[1]s): %w", node, err)
		}
		return p.PID, nil
	}
	return 0, fmt.Errorf("there is no running node %q", node)
}
