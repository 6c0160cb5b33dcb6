package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// patience bounds a wait by its progress: a slow machine may take long, but not without anything happening.
type patience struct {
	atMost time.Duration

	mu    sync.Mutex
	seen  map[string]bool // milestones; each counts once, so that what goes up and down again is no progress
	timer *time.Timer
}

// patienceKey is the key of a context's *patience.
type patienceKey struct{}

// WithPatience returns a context that ends when nothing has progressed for atMost: no step was done, no process began, no node came nearer to
// being Ready.
func WithPatience(ctx context.Context, atMost time.Duration) (context.Context, context.CancelFunc) {
	ctx, fail := context.WithCancelCause(ctx)
	p := &patience{atMost: atMost, seen: map[string]bool{}}
	p.timer = time.AfterFunc(atMost, func() { fail(fmt.Errorf("no progress for %s (--wait)", atMost)) })
	return context.WithValue(ctx, patienceKey{}, p), func() { p.timer.Stop(); fail(nil) }
}

// progressed notes a milestone of the wait that ctx bounds, if it is one.
func progressed(ctx context.Context, milestone string) {
	p, ok := ctx.Value(patienceKey{}).(*patience)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.seen[milestone] && p.timer.Stop() { // a wait that has ended stays so
		p.seen[milestone] = true
		p.timer.Reset(p.atMost)
	}
}

// watchProgress notes, until ctx ends, which of the cluster's processes run, if ctx bounds a wait by its progress. The waits themselves note
// what they see of nodes and pods.
func watchProgress(ctx context.Context, c plan.Config) {
	if ctx.Value(patienceKey{}) == nil {
		return
	}
	tick := time.NewTicker(troubleEvery)
	defer tick.Stop()
	for {
		for socket, prefix := range controlSockets(c) {
			if s, err := supervise.Ask(ctx, socket); err == nil {
				for _, p := range s.Processes {
					if p.PID != 0 {
						progressed(ctx, prefix+p.Name+" runs")
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

// whyNotReady says of each of the cluster's nodes that is not Ready why, from the Nodes that the API has.
func whyNotReady(c plan.Config, nodes map[string]*corev1.Node) string {
	var out []string
	for _, node := range c.Nodes {
		n, why := nodes[node.Name()], "has not registered"
		if n != nil {
			if ready(n) {
				continue
			}
			why = "has told nothing of itself"
			for _, condition := range n.Status.Conditions {
				if condition.Type == corev1.NodeReady {
					why = fmt.Sprintf("is not Ready: %s", condition.Message)
				}
			}
		}
		out = append(out, fmt.Sprintf("node %s %s", node.Name(), why))
	}
	return strings.Join(out, "; ")
}

// podTrouble says why a pod is not ready: what the pod itself, its scheduling or its first container that waits says.
func podTrouble(p *corev1.Pod) string {
	for _, cs := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := cs.State.Waiting; w != nil {
			return strings.TrimSuffix(fmt.Sprintf("%s: %s", w.Reason, w.Message), ": ")
		}
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status != corev1.ConditionTrue {
			return condition.Message
		}
	}
	return string(p.Status.Phase)
}
