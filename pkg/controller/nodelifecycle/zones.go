package nodelifecycle

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/controller"
)

// excluded is the label of nodes that say nothing about the health of their zone.
const excluded = "node.kubernetes.io/exclude-disruption"

// Evictions say how fast nodes that failed lose their pods, by the state of their zone
// (https://kubernetes.io/docs/concepts/architecture/nodes/#rate-limits-on-eviction).
type Evictions struct {
	// Rate is how many nodes per second are given up in a healthy zone, and in one without any ready node while another
	// zone has some: the fault may be on the way there. Default 0.1.
	Rate float32
	// SecondaryRate is the same for a zone where at least Threshold of the nodes, and more than two, are not ready; a
	// zone of no more than LargeZone nodes gives none up then. Defaults 0.01, 0.55 and 50.
	SecondaryRate, Threshold float32
	LargeZone                int
}

// perSecond is how many nodes per second are given up in a zone with so many ready and failed nodes. Few failures are
// ordinary and go at Rate. Many at once look like a fault of the network or of the control plane: then a large zone
// goes slowly and a small one waits. With no ready node at all the zone goes at Rate again, if other zones work; survey
// stops everything if none does.
func (e Evictions) perSecond(ready, failed int) float32 {
	switch {
	case ready == 0:
		return e.Rate
	case failed > 2 && float32(failed) >= e.Threshold*float32(ready+failed):
		if ready+failed > e.LargeZone {
			return e.SecondaryRate
		}
		return 0
	}
	return e.Rate
}

// zone is one zone as the last survey saw it.
type zone struct {
	label      string // in metrics
	nodes      int
	ready, bad int            // of the nodes that count for its health
	failed     []*corev1.Node // all that are not ready, the longest first
	limit      *rate.Limiter
}

// zones decide when a node that is not ready may get the taint that drives its pods away. While no zone has a ready
// node no one may, and all are taken back: then it is more likely that this controller's view is wrong than that all
// nodes are gone. The caller sees to it that only one survey runs at a time.
//
// Controller.mu guards it, except for its own sequence of surveys.
type zones struct {
	Evictions
	known map[string]*zone
	// given are the nodes that may have the taint.
	given map[string]bool
	down  bool
}

func newZones(e Evictions) *zones {
	return &zones{Evictions: e, known: map[string]*zone{}, given: map[string]bool{}}
}

// survey looks at all nodes again. It returns the nodes that it gave up, or took back, and whether the time of no ready
// node at all is over.
//
// Each failed node that is not given yet needs a token of its zone; the tokens come at the zone's rate, one at most in
// store. The nodes that failed first are served first.
func (z *zones) survey(nodes []*corev1.Node, now time.Time) (changed []string, recovered bool) {
	z.count(nodes, now)
	was := z.down
	ready, bad := 0, 0
	for _, at := range z.known {
		ready, bad = ready+at.ready, bad+at.bad
	}
	z.down = ready == 0 && bad > 0
	failed := map[string]bool{}
	for _, at := range z.known {
		per := z.perSecond(at.ready, at.bad)
		at.limit.SetLimitAt(now, rate.Limit(per))
		for _, n := range at.failed {
			failed[n.Name] = true
			switch {
			case z.down:
				changed = append(changed, n.Name)
			case z.given[n.Name]:
			// Given up in an earlier life of this controller: no token.
			case evicting(n):
				z.given[n.Name] = true
			case per > 0 && at.limit.AllowN(now, 1):
				z.given[n.Name] = true
				changed = append(changed, n.Name)
			}
		}
	}
	for name := range z.given {
		if z.down || !failed[name] {
			delete(z.given, name)
		}
	}
	// They were taken back when it began; there is nothing new to tell.
	if was && z.down {
		changed = nil
	}
	return changed, was && !z.down
}

// soonest is the least time between two surveys: rates of more than ten nodes per second end there, as upstream.
const soonest = 100 * time.Millisecond

// next is when a zone may give up the next of the nodes that the last survey, which was now, left waiting for their
// turn; 0 if none waits.
//
// It peeks at the limiter and takes nothing.
func (z *zones) next(now time.Time) (first time.Duration) {
	for _, at := range z.known {
		waits := slices.ContainsFunc(at.failed, func(n *corev1.Node) bool { return !z.given[n.Name] })
		per := float64(at.limit.Limit())
		if z.down || !waits || per == 0 {
			continue
		}
		// Rounded up: a turn that has not quite come would cost a whole one.
		left := time.Duration((1-at.limit.TokensAt(now))/per*float64(time.Second)) + time.Millisecond
		if first == 0 || left < first {
			first = left
		}
	}
	if first == 0 {
		return 0
	}
	return max(first, soonest)
}

// count files the nodes under their zones. A zone that has no node any more is forgotten.
//
// Zones keep their limiter from survey to survey: tokens that were saved or spent stay so.
func (z *zones) count(nodes []*corev1.Node, now time.Time) {
	for _, at := range z.known {
		at.nodes, at.ready, at.bad, at.failed = 0, 0, 0, nil
	}
	for _, n := range nodes {
		key := zoneOf(n)
		at := z.known[key]
		if at == nil {
			at = &zone{label: zoneLabel(n), limit: rate.NewLimiter(rate.Limit(z.Rate), 1)}
			z.known[key] = at
		}
		at.nodes++
		_, out := n.Labels[excluded]
		switch {
		case !nodeReady(n):
			at.failed = append(at.failed, n)
			if !out {
				at.bad++
			}
		case !out:
			at.ready++
		}
	}
	for key, at := range z.known {
		if at.nodes == 0 {
			delete(z.known, key)
		}
		slices.SortFunc(at.failed, func(a, b *corev1.Node) int {
			if c := since(a).Compare(since(b)); c != 0 {
				return c
			}
			return strings.Compare(a.Name, b.Name)
		})
	}
}

// zoneOf is the key of a node's zone. Nodes without the labels share the zone "/".
func zoneOf(n *corev1.Node) string {
	return n.Labels[corev1.LabelTopologyRegion] + "/" + n.Labels[corev1.LabelTopologyZone]
}

// since is when the node's readiness last changed.
//
// Those that failed first are given up first.
func since(n *corev1.Node) time.Time {
	if r := controller.NodeCondition(n, corev1.NodeReady); r != nil {
		return r.LastTransitionTime.Time
	}
	return n.CreationTimestamp.Time
}

// evicting reports whether the node has a taint already that drives its pods away because it is not ready.
func evicting(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoExecute && managed(t)
	})
}
