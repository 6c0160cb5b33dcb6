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
		classes: newRecent[classKey, *class](), trackers: newRecent[trackerKey, *tracked](),
	}
}

// Decide returns the chosen node; the error is a *framework.FitError when no node fits.
func (d *Incremental) Decide(p *framework.Profile, state *framework.CycleState, pod *framework.PodInfo, s *framework.Snapshot) (Result, error) {
	pl := d.plan(p)
	if !pl.possible || len(d.plain.Nominator.Nodes(pod)) > 0 {
		return d.plain.Decide(p, state, pod, s)
	}
	limit := keep(len(s.Nodes))
	c := d.classes.get(classKey{p, pod.Class()}, limit, func() *class { return newClass(pl, pod, s) })
	if c.special || !d.track(p, pl, pod, s, limit) {
		return d.plain.Decide(p, state, pod, s)
	}
	if !c.update(s) {
		return d.plain.Decide(p, state, pod, s)
	}
	d.collect(c)
	switch len(d.feasible) {
	case 0:
		// PostFilter reads what PreFilter prepares: only now it is worth preparing.
		if _, _, st := p.RunPreFilter(state, pod, s); !st.IsSuccess() {
			return Result{}, rejected(pod, s, framework.NewDiagnosis(s), st)
		}
		return Result{}, &framework.FitError{Pod: pod, Diagnosis: d.diagnose(c, s)}
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

// track brings the trackers that the pod needs up to date; false if one cannot be made.
func (d *Incremental) track(p *framework.Profile, pl *plan, pod *framework.PodInfo, s *framework.Snapshot, limit int) bool {
	d.active = d.active[:0]
	for _, t := range pl.tracking {
		key, needed := t.TrackKey(pod, s)
		if !needed {
			continue
		}
		tr := d.trackers.get(trackerKey{p, t.name, key}, limit, func() *tracked {
			return &tracked{Tracker: t.NewTracker(pod), weight: t.weight}
		})
		if tr.Tracker == nil {
			return false
		}
		tr.seen.changed(s, tr.Changed)
		tr.Begin()
		d.active = append(d.active, tr)
	}
	return true
}

// collect finds the feasible slots.
func (d *Incremental) collect(c *class) {
	d.feasible = d.feasible[:0]
slots:
	for slot, fail := range c.fail {
		if fail != passes {
			continue
		}
		for _, t := range d.active {
			if t.Filter(slot) != nil {
				continue slots
			}
		}
		d.feasible = append(d.feasible, int32(slot))
	}
}

// diagnose collects why no node is feasible.
func (d *Incremental) diagnose(c *class, s *framework.Snapshot) *framework.Diagnosis {
	out := framework.NewDiagnosis(s)
	for slot, n := range s.Nodes {
		if n == nil {
			continue
		}
		if c.fail[slot] != passes {
			out.Reject(n.Name(), c.statuses[c.fail[slot]])
			continue
		}
		for _, t := range d.active {
			if st := t.Filter(slot); st != nil {
				out.Reject(n.Name(), st)
				break
			}
		}
	}
	return out
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
