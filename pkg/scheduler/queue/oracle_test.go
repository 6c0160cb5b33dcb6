package queue

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/profile"
)

// oracle is the queue in its plainest form: a list of pods that is gone through for each event and for each choice.
type oracle struct {
	profile *profile.Profile
	now     func() time.Time
	pods    map[types.UID]*tale
}

// where a pod is.
type where int

const (
	active where = iota
	backingOff
	erring
	unschedulable
	inFlight
)

// tale is what happened to a pod.
type tale struct {
	framework.QueuedPod
	where         where
	until, failed time.Time
	err           bool
	again         bool
	updated       *model.PodInfo
	events        []clusterevent.Event // in flight
}

func (o *oracle) add(p *model.PodInfo) {
	o.pods[p.Pod.UID] = &tale{QueuedPod: framework.QueuedPod{PodInfo: p, Added: o.now()}}
}

func (o *oracle) activate(p *tale) { p.where, p.Added = active, o.now() }

func (o *oracle) revive(p *tale) {
	switch {
	case !p.until.After(o.now()):
		o.activate(p)
	case p.err:
		p.where = erring
	default:
		p.where = backingOff
	}
}

func (o *oracle) moved(e clusterevent.Event) {
	for _, p := range o.pods {
		switch {
		case p.where == inFlight:
			p.events = append(p.events, e)
		case p.where == unschedulable && o.profile.Helps(p.PodInfo, p.Failed, e):
			o.revive(p)
		}
	}
}

func (o *oracle) update(info *model.PodInfo, e clusterevent.Event) {
	p := o.pods[info.Pod.UID]
	if p.where == inFlight {
		p.updated = info
		for _, q := range o.pods {
			if q.where == inFlight {
				q.events = append(q.events, e)
			}
		}
		return
	}
	p.PodInfo = info
	if p.where == unschedulable && o.profile.Helps(info, p.Failed, e) {
		o.revive(p)
	}
}

func (o *oracle) retried(uid types.UID) {
	switch p := o.pods[uid]; p.where {
	case inFlight:
		p.again = true
	case unschedulable:
		p.err = true
		o.revive(p)
	}
}

// best returns the pods of which one must be popped now: those before which no other comes.
func (o *oracle) best() map[types.UID]bool {
	var all []*tale
	for _, p := range o.pods {
		if (p.where == backingOff || p.where == erring) && !p.until.After(o.now()) {
			o.activate(p)
		}
		if p.where == unschedulable && o.now().Sub(p.failed) >= 5*time.Minute {
			o.revive(p)
		}
	}
	for _, p := range o.pods {
		if p.where == active {
			all = append(all, p)
		}
	}
	before := func(a, b *tale) bool { return o.profile.Sort.Less(&a.QueuedPod, &b.QueuedPod) }
	if len(all) == 0 {
		for _, p := range o.pods {
			if p.where == backingOff {
				all = append(all, p)
			}
		}
		before = func(a, b *tale) bool {
			if !a.until.Equal(b.until) {
				return a.until.Before(b.until)
			}
			return o.profile.Sort.Less(&a.QueuedPod, &b.QueuedPod)
		}
	}
	out := map[types.UID]bool{}
	for _, p := range all {
		if !slices.ContainsFunc(all, func(q *tale) bool { return before(q, p) }) {
			out[p.Pod.UID] = true
		}
	}
	return out
}

func (o *oracle) popped(uid types.UID) {
	p := o.pods[uid]
	if p.where != active {
		o.activate(p)
	}
	p.where, p.events, p.again = inFlight, nil, false
	p.Attempts++
}

func (o *oracle) requeue(uid types.UID, failed map[string]bool, retry bool) {
	p := o.pods[uid]
	if p.updated != nil {
		p.PodInfo, p.updated = p.updated, nil
	}
	retry = retry || p.again
	p.Failed, p.failed, p.err = failed, o.now(), retry
	backoff := time.Second
	for range p.Attempts - 1 {
		backoff = min(2*backoff, 10*time.Second)
	}
	p.until = o.now().Add(backoff)
	if over := p.until.Sub(p.until.Truncate(time.Second)); !retry && over > 0 {
		p.until = p.until.Add(time.Second - over)
	}
	hope := retry
	for _, e := range p.events {
		own := about(e, uid)
		hope = hope || own == (e.Kind == clusterevent.TargetPod) && o.profile.Helps(p.PodInfo, failed, e)
	}
	if p.where = unschedulable; hope {
		o.revive(p)
	}
}

func (o *oracle) counts() Counts {
	var c Counts
	for _, p := range o.pods {
		switch p.where {
		case active:
			c.Active++
		case backingOff, erring:
			c.Backoff++
		case unschedulable:
			c.Unschedulable++
		case inFlight:
			c.InFlight++
		}
	}
	return c
}

// TestQueueDoesAsTheOracle runs random histories: whichever pod is popped is one that the oracle would pop, and after
// each pop as many pods are in each place.
func TestQueueDoesAsTheOracle(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			now := time.Unix(1000, 0)
			clock := func() time.Time { return now }
			c, prof := &crowd{r: rand.New(rand.NewPCG(seed, 2))}, allPlugins(t)
			names := slices.Sorted(maps.Keys(prof.Interests))
			q := New(Config{Profile: func(*model.PodInfo) *profile.Profile {
				return prof
			}, Less: prof.Sort.Less, Now: clock})
			o := &oracle{profile: prof, now: clock, pods: map[types.UID]*tale{}}
			flying := map[types.UID]*framework.QueuedPod{}
			pops, moved := 0, 0
			pick := func(want func(*tale) bool) types.UID {
				var list []types.UID
				for _, uid := range slices.Sorted(maps.Keys(o.pods)) {
					if want(o.pods[uid]) {
						list = append(list, uid)
					}
				}
				if len(list) == 0 {
					return ""
				}
				return list[c.r.IntN(len(list))]
			}
			for range 2000 {
				now = now.Add(time.Duration(c.r.IntN(3)) * 100 * time.Millisecond)
				if c.chance(1) {
					now = now.Add(time.Duration(c.r.IntN(200)) * time.Second)
				}
				switch k := c.r.IntN(100); {
				case k < 15 && len(o.pods) < 200:
					p := c.pod()
					p.Pod.Spec.Priority = new(int32(c.r.IntN(3)))
					q.Add(p)
					o.add(p)
				case k < 40:
					best := o.best()
					it, _, again := q.next()
					for again {
						it, _, again = q.next()
					}
					if it == nil {
						if len(best) > 0 {
							t.Fatalf("nothing is popped, want one of %v", best)
						}
						continue
					}
					uid := it.Pod.UID
					if !best[uid] {
						t.Fatalf("popped %s, want one of %v", uid, best)
					}
					o.popped(uid)
					if it.Attempts != o.pods[uid].Attempts || !it.Added.Equal(o.pods[uid].Added) ||
						it.PodInfo != o.pods[uid].PodInfo {
						t.Fatalf("popped %+v, want %+v", it.QueuedPod, o.pods[uid].QueuedPod)
					}
					flying[uid] = it.QueuedPod
					pops++
					if got, want := q.Counts(), o.counts(); got != want {
						t.Fatalf("%+v, want %+v", got, want)
					}
				case k < 62:
					uid := pick(func(p *tale) bool { return p.where == inFlight })
					if uid == "" {
						continue
					}
					if c.chance(10) {
						q.Done(uid)
						delete(o.pods, uid)
					} else {
						failed := map[string]bool{}
						for len(failed) == 0 || c.chance(40) {
							failed[c.one(names...)] = true
						}
						retry := c.chance(10)
						q.Requeue(flying[uid], failed, nil, retry)
						o.requeue(uid, failed, retry)
					}
					delete(flying, uid)
				case k < 88:
					e := c.event()
					if uid := pick(func(p *tale) bool { return p.where == inFlight }); uid != "" && c.chance(10) {
						e = clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete,
							Old: o.pods[uid].PodInfo}
					}
					n := 1
					if c.chance(5) {
						n = 20
					}
					for range n {
						q.Moved(e)
						o.moved(e)
						moved++
					}
				case k < 94:
					uid := pick(func(*tale) bool { return true })
					if uid == "" {
						continue
					}
					p := o.pods[uid].Pod.DeepCopy()
					p.Labels["app"] = c.one("web", "db", "job")
					p.Spec.Priority = new(int32(c.r.IntN(3)))
					info, e := model.NewPodInfo(p),
						clusterevent.Event{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateLabels}
					e.Old, e.New = o.pods[uid].PodInfo, info
					q.Update(info, e)
					o.update(info, e)
				case k < 97:
					if uid := pick(func(*tale) bool { return true }); uid != "" {
						q.Retry(uid)
						o.retried(uid)
					}
				default:
					if uid := pick(func(p *tale) bool { return p.where != inFlight }); uid != "" {
						q.Delete(uid)
						delete(o.pods, uid)
					}
				}
			}
			if pops < 200 || moved < 300 {
				t.Errorf("too little happened to mean much: %d pods popped, %d events", pops, moved)
			}
		})
	}
}
