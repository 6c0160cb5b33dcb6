package tainteviction

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// sightings remember since when nodes have their taints: since timeAdded, or, for a taint without (kubectl taint writes
// none), since it was first seen here. It holds one entry for each NoExecute taint that a node has now.
type sightings struct {
	mu    sync.Mutex
	nodes map[string][]sighting
}

func newSightings() *sightings { return &sightings{nodes: map[string][]sighting{}} }

// note takes in all the NoExecute taints that a node has, and returns them with their times.
func (s *sightings) note(node string, taints []corev1.Taint, now time.Time) []sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.nodes[node]
	out := make([]sighting, len(taints))
	for i, t := range taints {
		out[i] = sighting{t, now}
		if t.TimeAdded != nil {
			out[i].since = t.TimeAdded.Time
			continue
		}
		for _, old := range was {
			if old.TimeAdded == nil && old.Key == t.Key && old.Value == t.Value && old.Effect == t.Effect {
				out[i].since = old.since
			}
		}
	}
	if len(out) == 0 {
		delete(s.nodes, node)
	} else {
		s.nodes[node] = out
	}
	return out
}

// forget drops a node that is gone.
func (s *sightings) forget(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, node)
}
