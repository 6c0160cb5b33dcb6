package decide

import (
	"cmp"
	"context"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/profile"
)

// Incremental decides as Plain does, from verdicts that it keeps. Most nodes do not change between two decisions, and
// pods of one controller are alike: a decision then costs a walk over small integers instead of all filters for all
// nodes. The oracle tests hold it against Plain on random histories.
//
// It belongs to one goroutine. Each call must get the same Snapshot, updated in place: generations by slot tell what
// changed.
type Incremental struct {
	plain    *Plain
	plans    map[*profile.Profile]*plan
	classes  *recent[classKey, *class]
	trackers *recent[trackerKey, *tracked]

	// These are reused from decision to decision, so that a decision allocates nothing for each node.
	feasible      []int32
	rivals        map[int32][]*model.PodInfo // by slot: the pods nominated to it whose room is not to be taken
	total, scores []int64
	active        []*tracked
}

type classKey struct {
	profile *profile.Profile
	class   string
}

type trackerKey struct {
	profile     *profile.Profile
	plugin, key string
}

// tracked is a tracker with the generations of the nodes that it has counted.
type tracked struct {
	framework.Tracker
	seen   generations
	weight int64
}

// view is what one decision is about and what was found; the feasible slots are in Incremental.
type view struct {
	profile  *profile.Profile
	plan     *plan
	pod      *model.PodInfo
	snapshot *model.Snapshot
	// nominated are the pods that are nominated somewhere whose room the pod must not take.
	nominated []*model.PodInfo
	limit     int // of what is kept
	class     *class
	diagnosis *framework.Diagnosis // when no slot is feasible
}

// NewIncremental returns a decider without memory.
func NewIncremental(nominator *model.Nominator, random Random) *Incremental {
	return &Incremental{
		plain: &Plain{Nominator: nominator, Random: random}, plans: map[*profile.Profile]*plan{},
		classes: newRecent[classKey, *class](), trackers: newRecent[trackerKey, *tracked](),
		rivals: map[int32][]*model.PodInfo{},
	}
}

// Decide returns the chosen node; the error is a *framework.FitError when no node fits.
func (d *Incremental) Decide(ctx context.Context, p *profile.Profile, state *framework.CycleState, pod *model.PodInfo,
	s *model.Snapshot) (Result, error) {
	if v := d.look(p, state.Laps, pod, s); v != nil {
		return d.answer(v, state)
	}
	return d.plain.Decide(ctx, p, state, pod, s)
}

// look finds the feasible slots, and scores them if there are several. It returns nil if only Plain has the answer: a
// slow plug-in concerns the pod, PreFilter refuses it as a whole, or a plug-in failed. Plain then repeats the decision,
// with its errors and messages: the fast path has none of its own.
//
// It runs PreFilter with a state of its own: what a class keeps must not depend on the cycle of one pod.
func (d *Incremental) look(p *profile.Profile, laps *framework.Laps, pod *model.PodInfo, s *model.Snapshot) *view {
	pl := d.plan(p)
	key, fast := p.Class(pod)
	if !fast {
		return nil
	}
	state := framework.NewCycleState()
	state.Laps = laps
	names, restricted, st := profile.RunPreFilters(pl.preFilters, state, pod, s)
	if !st.IsSuccess() {
		return nil
	}
	state.Laps = nil // the class keeps the state
	v := &view{profile: p, plan: pl, pod: pod, snapshot: s, nominated: d.meetRivals(pod, s), limit: keep(len(s.Nodes))}
	d.active = d.active[:0]
	d.track(v, laps, false) // only what filters: what only scores is brought up to date if several nodes are feasible
	ok := false
	if names == nil {
		v.class = d.classes.get(classKey{p, key}, v.limit, func() *class { return newClass(pl, state, pod, s) })
		ok = v.class.update(s) && d.collect(v)
	} else {
		v.class = newClass(pl, state, pod, s)
		ok = d.collectNamed(v, names, restricted)
	}
	if !ok {
		return nil
	}
	if len(d.feasible) > 1 {
		d.track(v, laps, true)
		d.rate(v.class)
	}
	return v
}

// answer chooses among the feasible slots. The full PreFilter runs only for a pod that fits nowhere, and only if
// preemption asks (Prepare): a pod that fits does not need its state.
func (d *Incremental) answer(v *view, state *framework.CycleState) (Result, error) {
	switch len(d.feasible) {
	case 0:
		v.diagnosis.Prepare = func() *framework.Status {
			_, _, st := v.profile.RunPreFilter(state, v.pod, v.snapshot)
			return st
		}
		return Result{}, &framework.FitError{Pod: v.pod, Diagnosis: v.diagnosis}
	case 1:
		name := v.snapshot.Nodes[d.feasible[0]].Name()
		return Result{Best: []string{name}, Node: name, Feasible: 1}, nil
	}
	return d.choose(v.snapshot), nil
}

// plan returns how the results of the profile's plug-ins can be kept. It follows from the profile alone.
func (d *Incremental) plan(p *profile.Profile) *plan {
	pl := d.plans[p]
	if pl == nil {
		pl = newPlan(p)
		d.plans[p] = pl
	}
	return pl
}

// meetRivals notes the nominated pods of the same or a higher priority by the slot of their node, and returns them all.
// Their nodes count as if they ran there: the room that preemption made for them is not given away.
func (d *Incremental) meetRivals(pod *model.PodInfo, s *model.Snapshot) []*model.PodInfo {
	clear(d.rivals)
	var all []*model.PodInfo
	for node, list := range d.plain.Nominator.Rivals(pod) {
		if n := s.Get(node); n != nil {
			d.rivals[int32(n.Slot)] = list
			all = append(all, list...)
		}
	}
	return all
}

// track brings the trackers that the pod needs up to date and adds them to the active ones: those that only score, or
// all others. A tracker counts over many nodes, so it sees every node that changed since it was last asked, and Begin
// starts its next round of questions.
func (d *Incremental) track(v *view, laps *framework.Laps, scoresOnly bool) {
	for _, t := range v.plan.tracking {
		begun := laps.Begin()
		what := t.Track(v.pod, v.snapshot, v.nominated)
		if what.New == nil || (what.ScoresOnly || !t.filters) != scoresOnly {
			continue
		}
		tr := d.trackers.get(trackerKey{v.profile, t.name, what.Key}, v.limit, func() *tracked {
			return &tracked{Tracker: what.New(), weight: t.weight}
		})
		tr.seen.changed(v.snapshot, tr.Changed)
		tr.Begin()
		laps.End("Track", t.name, begun)
		d.active = append(d.active, tr)
	}
}

// collect finds the feasible slots, or why there are none; false after an error. The node that the pod is nominated to,
// if it is feasible, is the only one looked at.
func (d *Incremental) collect(v *view) bool {
	d.feasible = d.feasible[:0]
	c, s := v.class, v.snapshot
	if n := s.Get(d.plain.Nominator.Of(v.pod.Pod.UID)); n != nil {
		if !d.sort(d.verdict(c, n, c.fail[n.Slot]), n.Slot) {
			return false
		}
		if len(d.feasible) > 0 {
			return true
		}
	}
	for slot, fail := range c.fail {
		if fail == passes && !d.sort(d.verdict(c, s.Nodes[slot], fail), slot) {
			return false
		}
	}
	if len(d.feasible) > 0 {
		return true
	}
	v.diagnosis = framework.NewDiagnosis(s)
	for n := range s.All {
		st := d.verdict(c, n, c.fail[n.Slot])
		if !st.IsRejected() {
			return false
		}
		v.diagnosis.Reject(n, st)
	}
	return true
}

// sort puts a slot among the feasible ones if it passed; false for an error.
func (d *Incremental) sort(st *framework.Status, slot int) bool {
	if st.IsSuccess() {
		d.feasible = append(d.feasible, int32(slot))
		return true
	}
	return st.IsRejected()
}

// collectNamed does what collect does for a pod that can run on nodes of certain names only, and looks at no others:
// each pod of a DaemonSet is a class of its own, which is not kept.
func (d *Incremental) collectNamed(v *view, names map[string]bool, restricted []string) bool {
	d.feasible = d.feasible[:0]
	c, s := v.class, v.snapshot
	refused := map[*model.NodeInfo]*framework.Status{}
	for name := range names {
		n := s.Get(name)
		if n == nil {
			continue
		}
		st := d.verdict(c, n, c.filter(n))
		if !d.sort(st, n.Slot) {
			return false
		}
		if !st.IsSuccess() {
			refused[n] = st
		} else if name == d.plain.Nominator.Of(v.pod.Pod.UID) {
			d.feasible = append(d.feasible[:0], int32(n.Slot))
			return true
		}
	}
	if len(d.feasible) > 1 {
		c.resize(len(s.Nodes))
		for _, slot := range d.feasible {
			c.scoreNode(int(slot), s.Nodes[slot])
		}
	}
	if len(d.feasible) > 0 {
		return !c.broken
	}
	v.diagnosis = framework.NewDiagnosis(s)
	others := unnamed(restricted)
	for n := range s.All {
		v.diagnosis.Reject(n, cmp.Or(refused[n], others))
	}
	return true
}

// verdict is the result of all filters for a node: first as if the pods nominated to it were there, then without them,
// as in filterWithNominated. fail is the class's result without them.
func (d *Incremental) verdict(c *class, n *model.NodeInfo, fail int32) *framework.Status {
	if len(d.rivals) > 0 {
		if waiting := d.rivals[int32(n.Slot)]; len(waiting) > 0 {
			if st := d.crowded(c, n, waiting); !st.IsSuccess() {
				return st
			}
		}
	}
	if fail != passes && !c.late(fail) {
		return c.status(fail)
	}
	for _, t := range d.active {
		if st := t.Filter(n.Slot); st != nil {
			return st
		}
	}
	return c.status(fail)
}

// crowded is the verdict on a node as if the waiting pods ran there. It adds them to the trackers' counts, asks the
// filters, and takes them out again.
func (d *Incremental) crowded(c *class, node *model.NodeInfo, waiting []*model.PodInfo) *framework.Status {
	fail := c.filterCrowded(node, waiting)
	if fail != passes && !c.late(fail) || len(d.active) == 0 {
		return c.status(fail)
	}
	full := with(node, waiting)
	for _, t := range d.active {
		t.Changed(node.Slot, full)
		t.Begin()
		st := t.Filter(node.Slot)
		t.Changed(node.Slot, node)
		t.Begin()
		if st != nil {
			return st
		}
	}
	return c.status(fail)
}

// with returns a copy of the node on which the waiting pods run too.
func with(node *model.NodeInfo, waiting []*model.PodInfo) *model.NodeInfo {
	full := node.Clone()
	for _, w := range waiting {
		full.AddPod(w)
	}
	return full
}

// rate computes the total score of each feasible slot. It goes plug-in by plug-in, because a normalizer needs the
// scores of all feasible nodes at once. Scores are copied first: the class keeps the raw ones.
func (d *Incremental) rate(c *class) {
	n := len(d.feasible)
	if cap(d.total) < n {
		d.total, d.scores = make([]int64, n, n+n/4), make([]int64, n, n+n/4)
	}
	d.total, d.scores = d.total[:n], d.scores[:n]
	clear(d.total)
	for i := range c.columns {
		col := &c.columns[i]
		if col.skip {
			continue
		}
		for k, slot := range d.feasible {
			d.scores[k] = int64(col.raw[slot])
		}
		if col.normalizer != nil {
			col.normalizer.NormalizeScore(c.state, c.pod, nil, d.scores)
		}
		for k, score := range d.scores {
			d.total[k] += col.weight * score
		}
	}
	for _, t := range d.active {
		if t.Scores(d.feasible, d.scores) {
			for k, score := range d.scores {
				d.total[k] += t.weight * score
			}
		}
	}
}

// choose picks one of the slots with the best score. It draws one random number, as Plain does, so that both choose the
// same node from the same random source.
func (d *Incremental) choose(s *model.Snapshot) Result {
	r := Result{Feasible: len(d.feasible), Score: d.total[0]}
	n := 0
	for _, score := range d.total {
		switch {
		case score > r.Score:
			r.Score, n = score, 1
		case score == r.Score:
			n++
		}
	}
	pick := d.plain.Random(n)
	for k, slot := range d.feasible {
		if d.total[k] != r.Score {
			continue
		}
		if pick == 0 {
			r.Node = s.Nodes[slot].Name()
			break
		}
		pick--
	}
	return r
}

// best lists the nodes that choose picked from.
func (d *Incremental) best(s *model.Snapshot, score int64) []string {
	var out []string
	for k, slot := range d.feasible {
		if d.total[k] == score {
			out = append(out, s.Nodes[slot].Name())
		}
	}
	return out
}
