package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

const (
	// troubleEvery is how often a start looks for components that ended for want of space.
	troubleEvery = 500 * time.Millisecond
	// recently: a component that was started again longer ago is in no trouble.
	recently = 30 * time.Second
)

// watchSpace asks, until ctx ends, whether a component ended because the disk is full, and if so calls fail with its
// last words: it would be started again and again, and nothing would come of waiting.
func watchSpace(ctx context.Context, c plan.Config, fail func(error)) {
	full := unix.ENOSPC.Error()
	tick := time.NewTicker(troubleEvery)
	defer tick.Stop()
	for {
		for _, p := range troubled(ctx, c) {
			if strings.Contains(p.LastExit+p.LastWords, full) {
				fail(fmt.Errorf("%s: %w", c.DataDir, fmt.Errorf("%w; %s", unix.ENOSPC, p.Epitaph())))
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// troubled returns the components, of the host and of the nodes, that ended and are down or were started again just
// now.
func troubled(ctx context.Context, c plan.Config) []supervise.ProcessStatus {
	sockets := controlSockets(c)
	var found []supervise.ProcessStatus
	for _, socket := range slices.Sorted(maps.Keys(sockets)) {
		status, err := supervise.Ask(ctx, socket)
		if err != nil {
			continue // its end is told by the one above it, or by the step that fails
		}
		for _, p := range status.Processes {
			if p.Restarts > 0 && (p.PID == 0 || time.Since(p.Started) < recently) {
				p.Name = sockets[socket] + p.Name
				found = append(found, p)
			}
		}
	}
	return found
}

// controlSockets are those of the supervisor and the nodes, with what goes before the names of their processes.
func controlSockets(c plan.Config) map[string]string {
	l := c.Layout()
	sockets := map[string]string{l.Socket("supervisor"): ""}
	for _, node := range c.Nodes {
		sockets[l.NodeSocket(node.Name())] = node.Name() + "-"
	}
	return sockets
}

// nodesErrors returns the last errors of the kubelets since a time, for a start that waits for nodes in vain: a kubelet
// that runs and cannot do its work never ends, so that there are no last words. It is "" if no kubelet logged one.
func nodesErrors(c plan.Config, since time.Time) string {
	var text strings.Builder
	for _, name := range c.NodeNames() {
		lines := supervise.LastErrors(c.Layout().NodeLog(name, "kubelet"), since)
		if len(lines) > 0 {
			text.WriteString("\nthe last errors of " + name + "-kubelet:\n  " + strings.Join(lines, "\n  "))
		}
	}
	return text.String()
}
