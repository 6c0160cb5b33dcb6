package status

import (
	"context"
	"fmt"

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

// Line says in one line how many of this machine's nodes are Ready, or why that is not known. It is bounded as AllReady
// is.
func Line(ctx context.Context, c plan.Config) string {
	isReady, err := client.ReadyNodes(ctx, c)
	if err != nil {
		return fmt.Sprintf("the API server does not answer: %v", err)
	}
	ready := 0
	for _, node := range c.Nodes {
		if isReady[node.Name()] {
			ready++
		}
	}
	return fmt.Sprintf("%d of %d nodes are Ready", ready, len(c.Nodes))
}
