package steps

import (
	"context"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/supervise"
)

// watchProgress notes, until ctx ends, which of the cluster's processes run, if ctx bounds a wait by its progress. The
// steps themselves note what they see of nodes and pods.
func (s Start) watchProgress(ctx context.Context) {
	if !host.HasPatience(ctx) {
		return
	}
	look(ctx, func() (over bool) {
		for socket, prefix := range s.controlSockets() {
			if status, err := supervise.Ask(ctx, socket); err == nil {
				for _, p := range status.Processes {
					if p.PID != 0 {
						host.Progressed(ctx, prefix+p.Name+" runs")
					}
				}
			}
		}
		return false
	})
}
