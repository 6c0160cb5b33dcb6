package decide

import (
	"slices"
	"strings"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/topology"
)

// class keeps the results of the node-local plug-ins for each node, for all pods of one framework class.
type class struct {
	plan  *plan
	pod   *model.PodInfo // any pod of the class: node-local plug-ins read the same values from all of them
	state *framework.CycleState
	// broken classes (PreScore failed) are decided plainly.
	broken bool
	seen   generations
	// fail is, by slot, an index into statuses, or passes, or absent. Nodes refuse for few different reasons, so a
	// verdict costs four bytes.
	fail     []int32
	statuses []*framework.Status
	index    map[string]int32
	columns  []column
	crowds   map[int]crowd // by slot
}

// crowd is the verdict on a node as if the waiting pods ran there.
type crowd struct {
	generation int64
	waiting    []*model.PodInfo
	fail       int32
}

const (
	// passes is the verdict of a node that no filter refuses.
	passes int32 = 0
	// absent stands for a slot without a node, and for a node with a filter that failed.
	absent int32 = -1
)

// column is the raw score that one plug-in gives each slot. The scores of an Epochal plug-in hold until its epoch
// changes; then all of them are computed again.
type column struct {
	framework.Score
	weight     int64
	normalizer framework.Normalizer
	epochal    framework.Epochal
	epoch      int64
	prepare    framework.PreScore
	skip       bool
	raw        []int32
}

// newClass returns a class that has looked at no node. state has what PreFilter prepared for the pod. Every score gets
// a column, which PreScore prepares here, and again when the epoch of an Epochal plug-in changes. If PreScore fails
// here, the class is broken.
func newClass(pl *plan, state *framework.CycleState, pod *model.PodInfo, s *model.Snapshot) *class {
	c := &class{plan: pl, pod: pod, state: state, statuses: make([]*framework.Status, 1), index: map[string]int32{}}
	for _, w := range pl.scores {
		col := column{Score: w.Score, weight: w.Weight}
		col.normalizer, _ = w.Score.(framework.Normalizer)
		col.epochal, _ = w.Score.(framework.Epochal)
		for _, ps := range pl.preScores {
			if ps.Name() == w.Name() {
				col.prepare = ps
			}
		}
		c.broken = c.broken || !c.prepare(&col, s)
		c.columns = append(c.columns, col)
	}
	return c
}

// resize grows the class to at least slots slots. The new ones have no node yet (absent). It never shrinks.
func (c *class) resize(slots int) {
	for i := range c.columns {
		c.columns[i].raw = topology.Grow(c.columns[i].raw, slots-1)
	}
	for len(c.fail) < slots {
		c.fail = append(c.fail, absent)
	}
}

// scoreNode gives a slot its raw scores.
func (c *class) scoreNode(slot int, n *model.NodeInfo) {
	for i := range c.columns {
		if col := &c.columns[i]; !col.skip {
			col.raw[slot] = int32(col.Score.Score(c.state, c.pod, n))
		}
	}
}

// prepare runs PreScore; false after an error.
func (c *class) prepare(col *column, s *model.Snapshot) bool {
	if col.epochal != nil {
		col.epoch = col.epochal.ScoreEpoch(s)
	}
	if col.prepare == nil {
		return true
	}
	st := col.prepare.PreScore(c.state, c.pod, s, nil)
	col.skip = st.IsSkip()
	return col.skip || st.IsSuccess()
}

// update evaluates the nodes that changed since the last update; it returns false after an error. An error makes the
// class forget what it has seen, so that the next update begins with all nodes and no failed verdict is kept.
func (c *class) update(s *model.Snapshot) bool {
	ok := !c.broken
	for i := range c.columns {
		col := &c.columns[i]
		if col.epochal == nil || col.epochal.ScoreEpoch(s) == col.epoch {
			continue
		}
		ok = ok && c.prepare(col, s)
		for slot, n := range s.Nodes {
			if n != nil && slot < len(c.fail) && c.fail[slot] == passes && !col.skip {
				col.raw[slot] = int32(col.Score.Score(c.state, c.pod, n))
			}
		}
	}
	c.seen.changed(s, func(slot int, n *model.NodeInfo) {
		c.resize(slot + 1)
		if n == nil {
			c.fail[slot] = absent
			return
		}
		if c.fail[slot] = c.filter(n); c.fail[slot] != passes {
			if c.fail[slot] == absent {
				ok = false
			}
			return
		}
		c.scoreNode(slot, n)
	})
	if !ok {
		c.seen.last = -1
		c.seen.bySlot = nil
	}
	return ok
}

// filter returns the number of the node's verdict: absent after an error.
func (c *class) filter(n *model.NodeInfo) int32 {
	for _, f := range c.plan.filters {
		if c.state.SkipsFilter(f.Name()) {
			continue
		}
		st := f.Filter(c.state, c.pod, n)
		if st.IsSuccess() {
			continue
		}
		if !st.IsRejected() {
			return absent
		}
		return c.number(f.Name(), st)
	}
	return passes
}

// filterCrowded returns the number of the verdict on a node as if the waiting pods ran there. Pods may wait for room
// for a long time, and on many nodes: the verdict is kept as long as they and the node stay the same.
func (c *class) filterCrowded(n *model.NodeInfo, waiting []*model.PodInfo) int32 {
	known, ok := c.crowds[n.Slot]
	if ok && known.generation == n.Generation && slices.Equal(known.waiting, waiting) {
		return known.fail
	}
	if c.crowds == nil {
		c.crowds = map[int]crowd{}
	}
	fail := c.filter(with(n, waiting))
	if fail != absent {
		c.crowds[n.Slot] = crowd{n.Generation, waiting, fail}
	}
	return fail
}

// status is the verdict of that number: nil for passes, an error for absent.
func (c *class) status(fail int32) *framework.Status {
	if fail == absent {
		return framework.NewStatus(framework.Error)
	}
	return c.statuses[fail]
}

// late reports whether a filter that comes after tracking ones gave the verdict of that number. Such a verdict must not
// hide that of a tracker: the pod's condition names the first filter that refuses, in the order of the profile.
func (c *class) late(fail int32) bool {
	return fail != absent && fail != passes && c.plan.late[c.statuses[fail].Plugin]
}

// number gives equal statuses the same number. Code, reasons and detail are all compared: users see them.
func (c *class) number(plugin string, st *framework.Status) int32 {
	key := plugin + "\x00" + string(rune(st.Code)) + strings.Join(st.Reasons, "\x00") + "\x00\x00" + st.Detail
	i, ok := c.index[key]
	if !ok {
		named := *st
		named.Plugin = plugin
		i = int32(len(c.statuses))
		c.statuses = append(c.statuses, &named)
		c.index[key] = i
	}
	return i
}

// generations remembers which generation of each slot's node was seen, so that a reader gets each change once.
type generations struct {
	bySlot []int64 // of the node; 0 is none
	last   int64   // of the snapshot
}

// changed calls f with each slot whose node changed since the last call; the node is nil if it is gone. A snapshot of
// the same generation costs nothing, any other a comparison for each slot.
func (g *generations) changed(s *model.Snapshot, f func(slot int, n *model.NodeInfo)) {
	if g.bySlot != nil && g.last == s.Generation {
		return
	}
	g.last = s.Generation
	for slot, n := range s.Nodes {
		if slot == len(g.bySlot) {
			g.bySlot = append(g.bySlot, -1)
		}
		var now int64
		if n != nil {
			now = n.Generation
		}
		if g.bySlot[slot] != now {
			g.bySlot[slot] = now
			f(slot, n)
		}
	}
}
