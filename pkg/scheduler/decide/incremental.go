package decide

import (
	"bonsai/pkg/scheduler/framework"
)

// Incremental decides as Plain does, from kept verdicts. It belongs to one goroutine, and wants the same, growing Snapshot at
// each call.
type Incremental struct {
	plain    *Plain
	plans    map[*framework.Profile]*plan
	classes  *recent[classKey, *class]
	trackers *recent[trackerKey, *tracked]

	// Reused from decision to decision.
	feasible      []int32
	rivals        map[int32][]*framework.PodInfo // by slot: the pods nominated to it whose room is not to be taken
	total, scores []int64
	active        []*tracked
}

type classKey struct {
	profile *framework.Profile
	class   string
}

type trackerKey struct {
	profile     *framework.Profile
	plugin, key string
}

// tracked is a tracker with the generations of the nodes that it was told of.
type tracked struct {
	framework.Tracker
	seen   generations
	weight int64
}

// NewIncremental returns a decider without memory.
func NewIncremental(nominator *framework.Nominator, random Random) *Incremental {
	return &Incremental{
		plain: &Plain{Nominator: nominator, Random: random}, plans: map[*framework.Profile]*plan{},
		classes: newRecent[classKey, *class](), trackers: newRecent[trackerKey, *tracked](), rivals: map[int32][]*framework.PodInfo{},
	}
}

// Decide returns the chosen node; the error is a *framework.FitError when no node fits.
func (d *Incremental) Decide(p *framework.Profile, state *framework.CycleState, pod *framework.PodInfo, s *framework.Snapshot) (Result, error) {
	pl := d.plan(p)
	if !pl.possible {
		return d.plain.Decide(p, state, pod, s)
	}
	nominated := d.meetRivals(pod, s)
	limit := keep(len(s.Nodes))
	c := d.classes.get(classKey{p, pod.Class()}, limit, func() *class { return newClass(pl, pod, s) })
	if c.special {
		return d.plain.Decide(p, state, pod, s)
	}
	d.track(p, pl, pod, s, nominated, limit)
	if !c.update(s) || !d.collect(c, pod, s) {
		return d.plain.Decide(p, state, pod, s)
	}
	switch len(d.feasible) {
	case 0:
		diagnosis, ok := d.diagnose(c, s)
		if !ok {
			return d.plain.Decide(p, state, pod, s)
		}
		diagnosis.Prepare = func() *framework.Status {
			_, _, st := p.RunPreFilter(state, pod, s)
			return st
		}
		return Result{}, &framework.FitError{Pod: pod, Diagnosis: diagnosis}
	case 1:
		name := s.Nodes[d.feasible[0]].Name()
		return Result{Best: []string{name}, Node: name, Feasible: 1}, nil
	}
	d.rate(c)
	return d.choose(s), nil
}

// plan returns how the profile's plug-ins can be kept up to date.
func (d *Incremental) plan(p *framework.Profile) *plan {
	pl := d.plans[p]
	if pl == nil {
		pl = newPlan(p)
		d.plans[p] = pl
	}
	return pl
}

// meetRivals notes where pods are nominated to whose room the pod must not take, and returns these pods.
func (d *Incremental) meetRivals(pod *framework.PodInfo, s *framework.Snapshot) []*framework.PodInfo {
	clear(d.rivals)
	var all []*framework.PodInfo
	for node, list := range d.plain.Nominator.Rivals(pod) {
		if n := s.Get(node); n != nil {
			d.rivals[int32(n.Slot)] = list
			all = append(all, list...)
		}
	}
	return all
}

// track brings the trackers that the pod needs up to date.
func (d *Incremental) track(p *framework.Profile, pl *plan, pod *framework.PodInfo, s *framework.Snapshot, nominated []*framework.PodInfo, limit int) {
	d.active = d.active[:0]
	for _, t := range pl.tracking {
		key, make := t.Track(pod, s, nominated)
		if make == nil {
			continue
		}
		tr := d.trackers.get(trackerKey{p, t.name, key}, limit, func() *tracked {
			return &tracked{Tracker: make(), weight: t.weight}
		})
		tr.seen.changed(s, tr.Changed)
		tr.Begin()
		d.active = append(d.active, tr)
	}
}

// collect finds the feasible slots; false after an error. The node that the pod is nominated to, if it is feasible, is the only
// one looked at.
func (d *Incremental) collect(c *class, pod *framework.PodInfo, s *framework.Snapshot) bool {
	d.feasible = d.feasible[:0]
	if n := s.Get(d.plain.Nominator.Of(pod.Pod.UID)); n != nil {
		switch st := d.verdict(c, s, n.Slot); {
		case st.IsSuccess():
			d.feasible = append(d.feasible, int32(n.Slot))
			return true
		case !st.IsRejected():
			return false
		}
	}
	for slot, fail := range c.fail {
		if fail != passes {
			continue
		}
		switch st := d.verdict(c, s, slot); {
		case st.IsSuccess():
			d.feasible = append(d.feasible, int32(slot))
		case !st.IsRejected():
			return false
		}
	}
	return true
}

// verdict is what all filters say of a slot that has a node: first as if the pods nominated to it were there, then without them,
// as in filterWithNominated.
func (d *Incremental) verdict(c *class, s *framework.Snapshot, slot int) *framework.Status {
	if len(d.rivals) > 0 {
		if waiting := d.rivals[int32(slot)]; len(waiting) > 0 {
			if st := d.crowded(c, s, slot, waiting); !st.IsSuccess() {
				return st
			}
		}
	}
	if c.fail[slot] != passes {
		return c.statuses[c.fail[slot]]
	}
	for _, t := range d.active {
		if st := t.Filter(slot); st != nil {
			return st
		}
	}
	return nil
}

// crowded is the verdict on a slot as if the waiting pods were on its node already. The trackers are told of them, asked, and
// told the truth again.
func (d *Incremental) crowded(c *class, s *framework.Snapshot, slot int, waiting []*framework.PodInfo) *framework.Status {
	node := s.Nodes[slot]
	full := node.Clone()
	for _, w := range waiting {
		full.AddPod(w)
	}
	switch fail := c.filter(full); fail {
	case passes:
	case absent:
		return framework.NewStatus(framework.Error)
	default:
		return c.statuses[fail]
	}
	for _, t := range d.active {
		t.Changed(slot, full)
		t.Begin()
		st := t.Filter(slot)
		t.Changed(slot, node)
		t.Begin()
		if st != nil {
			return st
		}
	}
	return nil
}

// diagnose collects why no node is feasible; false after an error.
func (d *Incremental) diagnose(c *class, s *framework.Snapshot) (*framework.Diagnosis, bool) {
	out := framework.NewDiagnosis(s)
	for slot, n := range s.Nodes {
		if n == nil {
			continue
		}
		st := d.verdict(c, s, slot)
		if !st.IsRejected() {
			return nil, false
		}
		out.Reject(n, st)
	}
	return out, true
}

// rate computes the total score of each feasible slot.
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

// choose picks one of the slots of the best score.
func (d *Incremental) choose(s *framework.Snapshot) Result {
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
func (d *Incremental) best(s *framework.Snapshot, score int64) []string {
	var out []string
	for k, slot := range d.feasible {
		if d.total[k] == score {
			out = append(out, s.Nodes[slot].Name())
		}
	}
	return out
}
