package interpodaffinity

import (
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/topology"
)

// Track: the answers depend on the pod's own terms, whether they are about itself, and which terms of other pods are
// about it, while namespaces keep their labels. A pod that has no terms and that no term is about can go anywhere.
func (p *Plugin) Track(pod *model.PodInfo, s *model.Snapshot, nominated []*model.PodInfo) framework.Tracked {
	if !pod.HasTerms() && s.WithTerms == 0 {
		return framework.Tracked{}
	}
	r := p.rules(pod)
	about := map[string]bool{}
	s.TermsAbout(pod.Pod, r.nsLabels, func(id string) { about[id] = true })
	for _, n := range nominated {
		for t := range n.Terms.All {
			if r.meant(t) {
				about[t.ID] = true
			}
		}
	}
	if !pod.HasTerms() && len(about) == 0 {
		return framework.Tracked{}
	}
	var k model.Key
	k.Num(p.Namespaces.Epoch())
	k.Bool(r.aboutAll(pod))
	for _, list := range [][]model.AffinityTerm{r.terms.Affinity, r.terms.AntiAffinity, r.terms.PreferredAffinity,
		r.terms.PreferredAntiAffinity} {
		k.Num(int64(len(list)))
		for i := range list {
			t := &list[i]
			k.Str(t.ID, t.TopologyKey)
			k.Num(int64(t.Weight))
		}
	}
	k.Set(about)
	return framework.Tracked{Key: k.String(), New: func() framework.Tracker {
		r.matched = about
		return newTracker(r)
	}}
}

func newTracker(r *rules) *tracker {
	t := &tracker{rules: r, self: r.aboutAll(r.pod), own: r.pod.HasTerms(), dims: map[string]*axis{},
		notNear: &framework.Status{Code: framework.UnschedulableAndUnresolvable, Reasons: []string{reasonAffinity},
			Plugin: name},
		tooNear:  &framework.Status{Code: framework.Unschedulable, Reasons: []string{reasonAnti}, Plugin: name},
		unwanted: &framework.Status{Code: framework.Unschedulable, Reasons: []string{reasonExisting}, Plugin: name},
	}
	for i := range r.terms.Affinity {
		t.near = append(t.near, t.axis(r.terms.Affinity[i].TopologyKey))
	}
	for i := range r.terms.AntiAffinity {
		t.apart = append(t.apart, t.axis(r.terms.AntiAffinity[i].TopologyKey))
	}
	return t
}

// tracker keeps the counts by topology key, kind and domain.
type tracker struct {
	rules                      *rules
	self, own                  bool
	dims                       map[string]*axis
	list                       []*axis
	near, apart                []*axis
	nodes                      []*model.NodeInfo
	added                      [][]fact // by slot
	total                      int64    // of affinity counts, over all keys and domains
	notNear, tooNear, unwanted *framework.Status
}

// axis is one topology key with its counts: by kind, then by domain. sum is over the domains; weights counts the score
// facts.
type axis struct {
	dim     *topology.Dimension
	counts  [score + 1][]int64
	sum     [score + 1]int64
	weights int
}

// fact is what a node's pods added to an axis.
type fact struct {
	axis   *axis
	kind   kind
	domain int32
	by     int64
}

// axis returns the axis of a key, filling a new one with all nodes.
func (t *tracker) axis(key string) *axis {
	if a := t.dims[key]; a != nil {
		return a
	}
	a := &axis{dim: topology.NewDimension(key)}
	for slot, n := range t.nodes {
		a.dim.Set(slot, n)
	}
	t.dims[key] = a
	t.list = append(t.list, a)
	return a
}

// Changed takes back what a slot's pods had added and adds what they add now.
func (t *tracker) Changed(slot int, node *model.NodeInfo) {
	t.nodes, t.added = topology.Grow(t.nodes, slot), topology.Grow(t.added, slot)
	for _, f := range t.added[slot] {
		t.count(f, -1)
	}
	t.added[slot] = t.added[slot][:0]
	t.nodes[slot] = node
	for _, a := range t.list {
		a.dim.Set(slot, node)
	}
	if node == nil {
		return
	}
	list := node.WithTerms
	if t.own {
		list = node.Pods
	}
	for _, other := range list {
		t.rules.facts(other, func(k kind, key string, by int64) {
			a := t.axis(key)
			if id := a.dim.Of(slot); id != topology.None {
				f := fact{a, k, id, by}
				t.added[slot] = append(t.added[slot], f)
				t.count(f, 1)
			}
		})
	}
}

func (t *tracker) count(f fact, sign int64) {
	c := &f.axis.counts[f.kind]
	*c = topology.Grow(*c, int(f.domain))
	(*c)[f.domain] += sign * f.by
	f.axis.sum[f.kind] += sign * f.by
	switch f.kind {
	case affinity:
		t.total += sign * f.by
	case score:
		f.axis.weights += int(sign)
	}
}

func (a *axis) at(k kind, slot int) int64 {
	id := a.dim.Of(slot)
	if id == topology.None || int(id) >= len(a.counts[k]) {
		return 0
	}
	return a.counts[k][id]
}

// Begin has nothing to prepare.
func (t *tracker) Begin() {}

// Filter is the verdict on a slot.
func (t *tracker) Filter(slot int) *framework.Status {
	there := true
	for _, a := range t.near {
		if a.dim.Of(slot) == topology.None {
			return t.notNear
		}
		there = there && a.at(affinity, slot) > 0
	}
	if !there && (t.total > 0 || !t.self) {
		return t.notNear
	}
	for _, a := range t.apart {
		if a.at(anti, slot) > 0 {
			return t.tooNear
		}
	}
	for _, a := range t.list {
		if a.sum[existing] > 0 && a.at(existing, slot) > 0 {
			return t.unwanted
		}
	}
	return nil
}

// Scores rates the feasible slots.
func (t *tracker) Scores(feasible []int32, out []int64) bool {
	clear(out)
	any := false
	for _, a := range t.list {
		if a.weights == 0 {
			continue
		}
		any = true
		for k, slot := range feasible {
			out[k] += a.at(score, int(slot))
		}
	}
	if any {
		normalize(out)
	}
	return any
}
