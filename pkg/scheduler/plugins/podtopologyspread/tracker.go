package podtopologyspread

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/topology"
)

// Track: the answers depend on the namespace, the constraints (the pod's own or the default ones), whether the pod
// counts for them itself, and on what makes nodes eligible where a constraint asks for that.
func (p *Plugin) Track(pod *model.PodInfo, _ *model.Snapshot, _ []*model.PodInfo) framework.Tracked {
	var k model.Key
	k.Str(pod.Pod.Namespace)
	k.Num(int64(len(pod.Spread)))
	soft, byAffinity, byTaints := true, false, false
	constraints := p.constraints(pod)
	if len(constraints) == 0 {
		return framework.Tracked{}
	}
	if len(pod.Spread) == 0 {
		k.Selector(constraints[0].Selector) // one for all; the rest is the plug-in's
	}
	for i := range constraints {
		c := &constraints[i]
		k.Str(c.ID)
		k.Bool(c.Hard && c.Selector.Matches(labels.Set(pod.Pod.Labels)))
		soft, byAffinity, byTaints = soft && !c.Hard, byAffinity || c.HonorAffinity, byTaints || c.HonorTaints
	}
	if byAffinity {
		k.NodeRules(pod.Pod)
	}
	if byTaints {
		k.Tolerations(pod.Pod)
	}
	return framework.Tracked{Key: k.String(), ScoresOnly: soft, New: func() framework.Tracker {
		return newTracker(p.rules(pod))
	}}
}

func newTracker(r *rules) *tracker {
	t := &tracker{
		rules: r,
		noLabel: &framework.Status{Code: framework.UnschedulableAndUnresolvable, Reasons: []string{reasonNoLabel},
			Plugin: name},
		skewed: &framework.Status{Code: framework.Unschedulable, Reasons: []string{reason}, Plugin: name},
	}
	for i := range r.hard {
		t.hard = append(t.hard, newCounter(&r.hard[i]))
		t.self = append(t.self, r.self(&r.hard[i]))
	}
	for i := range r.soft {
		t.soft = append(t.soft, newCounter(&r.soft[i]))
	}
	return t
}

// tracker keeps the counts of all constraints.
type tracker struct {
	rules           *rules
	hard, soft      []*counter
	noLabel, skewed *framework.Status
	noKeys          []bool // by slot: a key of a soft constraint is missing
	least, self     []int  // by hard constraint: of Begin; 1 if the pod matches itself
}

// counter keeps the matching pods of one constraint, by slot and by domain.
type counter struct {
	*constraint
	dim *topology.Dimension
	// onNode are the matching pods of a slot; counted reports whether they are in the domain's sum.
	onNode  []int32
	counted []bool
	// sums and nodes are by domain: the pods, and the nodes that count.
	sums, nodes []int32
	seen        []int32 // by domain: the round in which Scores met it
	round       int32
}

func newCounter(c *constraint) *counter {
	return &counter{constraint: c, dim: topology.NewDimension(c.TopologyKey)}
}

// set replaces what is known of a slot.
func (c *counter) set(slot int, node *model.NodeInfo, matching int32, counts bool) {
	c.onNode, c.counted = topology.Grow(c.onNode, slot), topology.Grow(c.counted, slot)
	if c.counted[slot] {
		old := c.dim.Of(slot)
		c.sums[old] -= c.onNode[slot]
		c.nodes[old]--
	}
	id := c.dim.Set(slot, node)
	c.onNode[slot], c.counted[slot] = matching, counts && id != topology.None
	if c.counted[slot] {
		c.sums, c.nodes = topology.Grow(c.sums, int(id)), topology.Grow(c.nodes, int(id))
		c.sums[id] += matching
		c.nodes[id]++
	}
}

func (c *counter) sum(id int32) int {
	if int(id) >= len(c.sums) {
		return 0
	}
	return int(c.sums[id])
}

// Changed counts a node again.
func (t *tracker) Changed(slot int, node *model.NodeInfo) {
	r := t.rules
	update := func(list []*counter, keys bool) {
		for _, c := range list {
			if node == nil {
				c.set(slot, nil, 0, false)
				continue
			}
			c.set(slot, node, int32(r.matching(c.constraint, node)), keys && r.counts(c.constraint, node))
		}
	}
	update(t.hard, node != nil && hasKeys(node, r.hard))
	softKeys := node != nil && (!r.requireAll || hasKeys(node, r.soft))
	update(t.soft, softKeys)
	t.noKeys = topology.Grow(t.noKeys, slot)
	t.noKeys[slot] = !softKeys
}

// Begin finds the emptiest domain of each hard constraint.
func (t *tracker) Begin() {
	t.least = t.least[:0]
	for _, c := range t.hard {
		least, domains := math.MaxInt32, 0
		for id, n := range c.nodes {
			if n > 0 {
				domains++
				least = min(least, int(c.sums[id]))
			}
		}
		if domains < c.MinDomains {
			least = 0
		}
		t.least = append(t.least, least)
	}
}

// Filter is the verdict on a slot.
func (t *tracker) Filter(slot int) *framework.Status {
	for i, c := range t.hard {
		id := c.dim.Of(slot)
		if id == topology.None {
			return t.noLabel
		}
		if c.sum(id)+t.self[i]-t.least[i] > c.MaxSkew {
			return t.skewed
		}
	}
	return nil
}

// Scores rates the feasible slots.
func (t *tracker) Scores(feasible []int32, out []int64) bool {
	if len(t.soft) == 0 {
		return false
	}
	weights := make([]float64, len(t.soft))
	for i, c := range t.soft {
		weights[i] = weight(c.domainsAmong(feasible, t.noKeys))
	}
	for k, slot := range feasible {
		if t.noKeys[slot] {
			out[k] = ignored
			continue
		}
		sum := 0.0
		for i, c := range t.soft {
			id := c.dim.Of(int(slot))
			if id == topology.None {
				continue
			}
			count := c.sum(id)
			if c.TopologyKey == corev1.LabelHostname {
				count = int(c.onNode[slot])
			}
			sum += part(count, c.constraint, weights[i])
		}
		out[k] = int64(math.Round(sum))
	}
	normalize(out)
	return true
}

// domainsAmong counts the domains that the feasible nodes are in; for the host name, the nodes.
func (c *counter) domainsAmong(feasible []int32, noKeys []bool) int {
	n := 0
	c.round++
	for _, slot := range feasible {
		if noKeys[slot] {
			continue
		}
		if c.TopologyKey == corev1.LabelHostname {
			n++
			continue
		}
		id := c.dim.Of(int(slot))
		if id == topology.None {
			continue
		}
		c.seen = topology.Grow(c.seen, int(id))
		if c.seen[id] != c.round {
			c.seen[id] = c.round
			n++
		}
	}
	return n
}
