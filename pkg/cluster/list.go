package cluster

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
)

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
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tNODES\tAPI SERVER\tPODS\tSERVICES\tCONTEXT\tDATA")
	for _, c := range all {
		if c.Name == "" {
			fmt.Fprintf(w, "?\tunreadable\t?\t?\t?\t?\t?\t%s\n", c.DataDir)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", c.Name, state(ctx, c), len(c.Nodes), c.LocalServer(),
			plan.CommaList(c.Networks().Pods()), plan.CommaList(c.Networks().Services()), c.Context(), c.DataDir)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if _, err := kubeconfig.User(); err != nil {
		fmt.Fprintf(out, "Stopped clusters that are neither in %s nor in their usual place are missing here: %v\n",
			home, err)
	}
	return nil
}

// state says in a word what a cluster does.
func state(ctx context.Context, c plan.Config) string {
	switch {
	case paused(c):
		return "paused"
	case running(ctx, c):
		return "running"
	}
	return "stopped"
}
