package steps

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/supervise"
)

// recently: a component that was started again longer ago is in no trouble.
const recently = 30 * time.Second

// WatchSpace looks, until ctx ends, whether a component ended because the disk is full, and if so calls fail with its
// last words: the supervisor would start it again and again, and waiting would not help.
func (s Start) WatchSpace(ctx context.Context, fail func(error)) {
	full := unix.ENOSPC.Error()
	look(ctx, func() (over bool) {
		for _, p := range s.troubled(ctx) {
			if strings.Contains(p.LastExit+p.LastWords, full) {
				fail(fmt.Errorf("%s: %w", s.layout, fmt.Errorf("%w; %s", unix.ENOSPC, p.Epitaph())))
				return true
			}
		}
		return false
	})
}

// troubled returns the components, of the host and of the nodes, that ended and are down or were started again within
// the time recently.
func (s Start) troubled(ctx context.Context) []supervise.ProcessStatus {
	sockets := s.controlSockets()
	var found []supervise.ProcessStatus
	for _, socket := range slices.Sorted(maps.Keys(sockets)) {
		status, err := supervise.Ask(ctx, socket)
		if err != nil {
			continue // the process above it reports its end, or the step that fails does
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

// controlSockets returns the control sockets of the supervisor and the nodes, each with the prefix that tells the names
// of its processes apart.
func (s Start) controlSockets() map[string]string {
	sockets := map[string]string{s.layout.Socket("supervisor"): ""}
	for _, node := range s.nodes {
		sockets[s.layout.NodeSocket(node)] = node + "-"
	}
	return sockets
}

// nodesErrors returns the last errors of the kubelets since the start began. A kubelet that runs and cannot do its work
// never ends, and so leaves no last words. It returns "" if no kubelet logged an error.
func (s Start) nodesErrors() string {
	var text strings.Builder
	for _, name := range s.nodes {
		lines := supervise.LastErrors(s.layout.NodeLog(name, "kubelet"), s.began)
		if len(lines) > 0 {
			text.WriteString("\nthe last errors of " + name + "-kubelet:\n  " + strings.Join(lines, "\n  "))
		}
	}
	return text.String()
}
