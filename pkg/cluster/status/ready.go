package status

import (
	"context"

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// AllReady reports whether the API server answers, and all nodes run and are Ready. It asks the nodes' inits too,
// because the API server does not know yet that a node died a moment ago. `up` calls it to find out whether there is
// anything to do. Each question has a bound of two seconds (client.Timeout), so a hanging part counts as not ready.
func AllReady(ctx context.Context, c plan.Config) bool {
	if client.AskReady(ctx, c) != nil {
		return false
	}
	isReady, err := client.ReadyNodes(ctx, c)
	for _, node := range c.Nodes {
		if _, err := supervise.Ask(ctx, c.Layout().NodeSocket(node.Name())); err != nil || !isReady[node.Name()] {
			return false
		}
	}
	return err == nil
}
