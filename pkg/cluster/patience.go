package cluster

import (
	"context"
	"time"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// watchProgress notes, until ctx ends, which of the cluster's processes run, if ctx bounds a wait by its progress. The
// waits themselves note what they see of nodes and pods.
func watchProgress(ctx context.Context, c plan.Config) {
	if !host.HasPatience(ctx) {
		return
	}
	tick := time.NewTicker(troubleEvery)
	defer tick.Stop()
	for {
		for socket, prefix := range controlSockets(c) {
			if s, err := supervise.Ask(ctx, socket); err == nil {
				for _, p := range s.Processes {
					if p.PID != 0 {
						host.Progressed(ctx, prefix+p.Name+" runs")
					}
				}
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
