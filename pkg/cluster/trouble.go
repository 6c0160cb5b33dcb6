package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// troubleEvery is how often a start looks for components that ended for want of space.
	troubleEvery = 500 * time.Millisecond
	// recently: a component that was started again longer ago is in no trouble.
	recently = 30 * time.Second
)

// watchSpace asks, until ctx ends, whether a component ended because the disk is full, and if so calls fail with its last words:
// it would be started again and again, and nothing would come of waiting.
func (c Config) watchSpace(ctx context.Context, fail func(error)) {
	full := unix.ENOSPC.Error()
	tick := time.NewTicker(troubleEvery)
	defer tick.Stop()
	for {
		for _, p := range c.troubled(ctx) {
			if strings.Contains(p.LastExit+p.LastWords, full) {
				fail(fmt.Errorf("%s: %w", c.DataDir, fmt.Errorf("%w; %s", unix.ENOSPC, p.epitaph())))
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

// troubled returns the components, of the host and of the nodes, that ended and are down or were started again just now.
func (c Config) troubled(ctx context.Context) []ProcessStatus {
	sockets := c.controlSockets()
	var found []ProcessStatus
	for _, socket := range slices.Sorted(maps.Keys(sockets)) {
		status, err := askControl(ctx, socket)
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
func (c Config) controlSockets() map[string]string {
	l := c.layout()
	sockets := map[string]string{l.socket("supervisor"): ""}
	for _, node := range c.Nodes {
		sockets[l.nodeSocket(node.Name())] = node.Name() + "-"
	}
	return sockets
}

// epitaph says how a process ended and what it said at last.
func (p ProcessStatus) epitaph() string {
	words := "it said nothing"
	if lines := strings.Split(p.LastWords, "\n"); p.LastWords != "" {
		const most = 3
		words = "its last words:\n  " + strings.Join(lines[max(0, len(lines)-most):], "\n  ")
	}
	return fmt.Sprintf("%s ended (%s), %s", p.Name, p.LastExit, words)
}
