package placement

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/why"
	"bonsai/pkg/why/simulate"
)

// writer words causes.
type writer struct {
	*inquiry
	info    *model.PodInfo
	cluster *simulate.Cluster
	nodes   int // of the cluster
}

// cause words a group with its evidence.
func (w *writer) cause(ctx context.Context, g *group) why.Cause {
	c := why.Cause{Code: g.code}
	switch g.code {
	case insufficientResource:
		w.resource(ctx, g, &c)
	case tooManyPods:
		w.pods(g, &c)
	case untoleratedTaint:
		c.Text = fmt.Sprintf("%s the taint %s, which the pod does not tolerate.", w.subject(g, "has", "have"), g.what)
		w.taints(g, &c)
	case selectorMismatch:
		w.selector(ctx, g, &c)
	case affinityMismatch:
		w.affinity(g, &c)
	case hostPortTaken:
		w.ports(g, &c)
	case podAffinity, podAntiAffinity:
		w.terms(g, &c)
	case topologySpread:
		w.spread(g, &c)
	case volumeElsewhere, volumeUnavailable, volumeLimit, volumeInUse, claimMissing, claimNotBound:
		w.volumes(ctx, g, &c)
	case deviceUnavailable:
		c = w.resourceClaims(ctx, g.status)
		c.Text = fmt.Sprintf("%s give the pod the devices that its claims ask for: %s.", w.able(g),
			why.Quote(g.status.Message()))
	case otherRefusal:
		c.Text = fmt.Sprintf("%s refused by the scheduler's plug-in %s: %s.", w.subject(g, "is", "are"),
			g.status.Plugin,
			why.Quote(g.status.Message()))
	default:
		w.ill(ctx, g, &c)
	}
	return c
}

// subject begins a sentence about the nodes of a group: "Node n1 has", "All 3 nodes (n1, n2 and n3) have".
func (w *writer) subject(g *group, one, many string) string {
	names := w.names(g)
	switch n := len(names); {
	case n == 1 && w.nodes == 1:
		return "The only node, " + names[0] + ", " + one
	case n == 1:
		return "Node " + names[0] + " " + one
	case n == w.nodes:
		return fmt.Sprintf("All %d nodes (%s) %s", n, why.And(names), many)
	default:
		return fmt.Sprintf("%d of %d nodes (%s) %s", n, w.nodes, why.And(names), many)
	}
}

// lacking begins a sentence about what the nodes of a group do not do: "Node n1 does not match", "Neither node (n1, n2)
// matches", "None of the 3 nodes (n1, n2 and n3) matches", "2 of 3 nodes (n1 and n2) do not match". base and one are
// the verb: match and matches.
func (w *writer) lacking(g *group, base, one string) string {
	names := w.names(g)
	switch n := len(names); {
	case n == 1 || n < w.nodes:
		return w.subject(g, "does not "+base, "do not "+base)
	case n == 2:
		return fmt.Sprintf("Neither node (%s) %s", strings.Join(names, ", "), one)
	default:
		return fmt.Sprintf("None of the %d nodes (%s) %s", n, why.And(names), one)
	}
}

// able begins a sentence about what the nodes of a group cannot do: "Node n1 cannot", "Neither node (n1, n2) can".
func (w *writer) able(g *group) string {
	if n := len(g.seats); n == 1 || n < w.nodes {
		return w.subject(g, "cannot", "cannot")
	}
	return w.lacking(g, "", "can")
}

func (w *writer) names(g *group) (names []string) {
	for _, s := range g.seats {
		names = append(names, s.node.Name())
	}
	return names
}

// some are the nodes of a group that evidence is shown of.
func (w *writer) some(g *group) []*seat { return g.seats[:min(len(g.seats), maxNodes)] }

func node(s *seat) why.Object { return why.ObjectOf("", "Node", s.node.Node) }

// resource words that nodes have too little of a resource left.
func (w *writer) resource(ctx context.Context, g *group, c *why.Cause) {
	name := corev1.ResourceName(g.what)
	want := w.info.Requests.Of(name)
	list := slices.Clone(g.seats)
	free := func(s *seat) int64 { return max(0, s.node.Allocatable.Of(name)-s.node.Requested.Of(name)) }
	slices.SortStableFunc(list, func(a, b *seat) int { return cmp.Compare(free(b), free(a)) })
	largest := slices.MaxFunc(list, func(a, b *seat) int {
		return cmp.Compare(a.node.Allocatable.Of(name), b.node.Allocatable.Of(name))
	})
	total := largest.node.Allocatable.Of(name)
	begin := fmt.Sprintf("The pod asks for %s %s", amount(name, want), called(name))
	switch {
	case total == 0:
		c.Text = fmt.Sprintf("%s, and %s none at all.", begin, w.object(g, "has", "have"))
	case want > total:
		c.Text = fmt.Sprintf("%s, which is more than %s: the largest, %s, has %s.", begin, w.each(g, "has"),
			largest.node.Name(), amount(name, total))
	default:
		var left []string
		for _, s := range list {
			left = append(left, fmt.Sprintf("%s has %s of %s left", s.node.Name(), amount(name, free(s)),
				amount(name, s.node.Allocatable.Of(name))))
		}
		c.Text = fmt.Sprintf("%s, which is more than %s left: %s.", begin, w.object(g, "has", "have"), why.And(left))
	}
	c.Evidence = append(c.Evidence, why.See(w.self, fmt.Sprintf(".spec.containers[*].resources.requests['%s']", name),
		w.requests(name)))
	c.Because = append(w.limitRanges(ctx, name), w.composed(ctx, name)...)
	if want <= total {
		c.Because = append(c.Because, w.holders(name, list[0].node)...)
	}
	for _, s := range list[:min(len(list), maxNodes)] {
		q := s.node.Node.Status.Allocatable[name]
		c.Evidence = append(c.Evidence, why.See(node(s), fmt.Sprintf(".status.allocatable['%s']", name), q.String()))
	}
}

// requests are what the pod's containers ask for, one after the other.
func (w *writer) requests(name corev1.ResourceName) string {
	var list []string
	for i := range w.pod.Spec.Containers {
		if q, ok := w.pod.Spec.Containers[i].Resources.Requests[name]; ok {
			list = append(list, q.String())
		}
	}
	return strings.Join(list, " ")
}

// object is subject within a sentence.
func (w *writer) object(g *group, one, many string) string {
	s := w.subject(g, one, many)
	return strings.ToLower(s[:1]) + s[1:]
}

// each is object about every node by itself: "any of all 2 nodes (n1 and n2) has".
func (w *writer) each(g *group, verb string) string {
	if len(g.seats) == 1 {
		return w.object(g, verb+" altogether", "")
	}
	return fmt.Sprintf("any of %s %s", strings.TrimSpace(w.object(g, "", "")), verb)
}

func (w *writer) pods(g *group, c *why.Cause) {
	s := g.seats[0]
	c.Text = fmt.Sprintf("%s as many pods as fit: %s runs %d of %d.", w.subject(g, "has", "have"), s.node.Name(),
		len(s.node.Pods), s.node.Allocatable.Pods)
	for _, s := range w.some(g) {
		q := s.node.Node.Status.Allocatable[corev1.ResourcePods]
		c.Evidence = append(c.Evidence, why.See(node(s), ".status.allocatable.pods", q.String()))
	}
}

func (w *writer) taints(g *group, c *why.Cause) {
	for _, s := range w.some(g) {
		e := why.See(node(s), fmt.Sprintf(`.spec.taints[?(@.key=="%s")]`, g.taint.Key), g.what)
		if g.taint.TimeAdded != nil {
			e.Time = &g.taint.TimeAdded.Time
		}
		c.Evidence = append(c.Evidence, e)
	}
}

// selector words which labels of the nodeSelector nodes lack.
func (w *writer) selector(ctx context.Context, g *group, c *why.Cause) {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(w.pod.Spec.NodeSelector)) {
		v, lacking, others := w.pod.Spec.NodeSelector[k], 0, map[string]bool{}
		for _, s := range g.seats {
			have, ok := s.node.Node.Labels[k]
			if have != v || !ok {
				lacking++
			}
			if ok && have != v {
				others[have] = true
			}
		}
		if lacking == 0 {
			continue
		}
		part := k + "=" + v
		if len(others) > 0 {
			part += fmt.Sprintf(" (nodes have %s)", why.And(slices.Sorted(maps.Keys(others))))
		}
		parts = append(parts, part)
		c.Evidence = append(c.Evidence, why.See(w.self, fmt.Sprintf(".spec.nodeSelector['%s']", k), v))
		c.Because = append(c.Because, w.givenLabel(ctx, k, v)...)
	}
	c.Text = fmt.Sprintf("%s the labels that the pod's nodeSelector asks for: %s.",
		w.lacking(g, "have", "has"), strings.Join(parts, ", "))
}

// affinity words the required node affinity.
func (w *writer) affinity(g *group, c *why.Cause) {
	c.Text = fmt.Sprintf("%s the pod's required node affinity", w.lacking(g, "match", "matches"))
	a := w.pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		c.Text += "."
		return
	}
	var terms []string
	for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		var list []string
		for _, r := range append(slices.Clone(t.MatchExpressions), t.MatchFields...) {
			list = append(list, strings.TrimSpace(r.Key+" "+string(r.Operator)+" "+strings.Join(r.Values, ",")))
		}
		terms = append(terms, strings.Join(list, " and "))
	}
	text := strings.Join(terms, ", or ")
	c.Text += ": " + text + "."
	c.Evidence = append(c.Evidence, why.See(w.self,
		".spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", text))
}

// ports words who has the host ports.
func (w *writer) ports(g *group, c *why.Cause) {
	var holders []string
	for _, s := range g.seats {
		for _, p := range s.node.Pods {
			for _, want := range w.info.Ports {
				if !slices.ContainsFunc(p.Ports, want.Conflicts) {
					continue
				}
				holders = append(holders, fmt.Sprintf("pod %s has port %d/%s on %s", p.Key(), want.Port, want.Protocol,
					s.node.Name()))
				if len(c.Evidence) < maxNodes {
					c.Evidence = append(c.Evidence, why.See(why.ObjectOf("", "Pod", p.Pod),
						".spec.containers[*].ports[*].hostPort", fmt.Sprint(want.Port)))
				}
			}
		}
	}
	c.Text = fmt.Sprintf("A host port that the pod asks for is taken: %s.", why.And(holders))
}

// ill words that nodes take no pods, whatever the pod, and asks why that is so.
func (w *writer) ill(ctx context.Context, g *group, c *why.Cause) {
	switch g.code {
	case nodeCordoned:
		c.Text = w.subject(g, "is", "are") + " cordoned: no new pods are placed there."
		for _, s := range w.some(g) {
			c.Evidence = append(c.Evidence, why.See(node(s), ".spec.unschedulable", "true"))
		}
		return
	case nodeNotReady:
		c.Text = w.subject(g, "is", "are") + " not ready: no new pods are placed there."
	case networkUnavailable:
		c.Text = w.subject(g, "has", "have") + " no network yet: no new pods are placed there."
	default:
		c.Text = fmt.Sprintf("%s short of a resource (%s): no new pods are placed there.", w.subject(g, "is", "are"),
			g.code)
	}
	w.taints(g, c)
	because, err := w.Causes(ctx, node(g.seats[0]))
	if err == nil {
		c.Because = because
	}
}
