package queue

import (
	"time"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/profile"
)

// watches are the unschedulable pods by what may help them. The cost of an event grows with the number of different
// answers to it, not with the number of pods: pods from which an Interest reads the same values form a group, and are
// asked about together. An event is only noted at first. work asks the groups one by one and hands out the pods of the
// groups that it helps: the same pods that Profile.Helps would name if it were asked about each pod at the event.
//
// The mutex of the queue guards them. Work that is left over is not lost: behind and woken hold it until Pop goes on.
type watches struct {
	byInterest map[*clusterevent.Interest]*watch
	// always are the pods that every event may help.
	always *group
	// behind are the watches with events that groups are still to be asked about.
	behind []*watch
	// woken are the groups that an event helped, in the order in which that was found; some may be empty by now.
	woken []*group
}

// watch is the groups that a plug-in's Interest speaks for, by what it reads of their pods, and the events of interest
// that some group was not asked about yet, at growing positions.
type watch struct {
	interest *clusterevent.Interest
	groups   map[string]*group
	first    int
	events   []happened
	// forgot is when events were forgotten last, because they were too many: who was not asked about them counts as
	// helped.
	forgot time.Time
	// todo are the groups that are left of a round over all of them, which asks about the events up to position until.
	todo  []*group
	until int
}

type happened struct {
	clusterevent.Event
	at time.Time
}

// forgotten stands for the label of events that were too many to be kept.
const forgotten = "EventsForgotten"

// maxEvents is how many events are kept for groups to be asked about.
const maxEvents = 512

// group is pods that get the same answer. A helped one takes no more pods: later ones were not there for the event.
type group struct {
	members []member
	watch   *watch // nil for those that every event may help
	key     string
	asked   int // the position of the first event that it was not asked about
	helped  bool
	at      time.Time // of the event that helped
	event   string    // its label
}

// member is a pod in a group, and which of the pod's memberships that is.
type member struct {
	it         *item
	membership int // the index in the item's memberships
}

// membership is where a pod stands in a group's members.
type membership struct {
	group *group
	at    int
}

// add begins to watch for it. Events up to now are not for it.
//
// A plug-in that declares no interests is one that any event may help, and so is a failure that no plug-in is blamed
// for.
func (w *watches) add(p *profile.Profile, it *item) {
	for name := range it.Failed {
		interests, ok := p.Interests[name]
		if !ok {
			w.addAlways(it)
			return
		}
		for i := range interests {
			w.group(&interests[i], interests[i].Key(it.PodInfo)).add(it)
		}
	}
	if len(it.Failed) == 0 {
		w.addAlways(it)
	}
}

// addAlways has every later event help a pod. A group that was helped is on its way out; the pod begins a new one,
// because the event was before its time.
func (w *watches) addAlways(it *item) {
	if w.always == nil || w.always.helped {
		w.always = &group{}
	}
	w.always.add(it)
}

// group returns the group of a key that no event so far has helped.
func (w *watches) group(interest *clusterevent.Interest, key string) *group {
	if w.byInterest == nil {
		w.byInterest = map[*clusterevent.Interest]*watch{}
	}
	in := w.byInterest[interest]
	if in == nil {
		in = &watch{interest: interest, groups: map[string]*group{}}
		w.byInterest[interest] = in
	}
	g := in.groups[key]
	// Events before now must not help a pod that comes now: the group is brought up to date first.
	if g != nil {
		w.ask(g)
	}
	if g == nil || g.helped {
		g = &group{watch: in, key: key, asked: in.end()}
		in.groups[key] = g
	}
	return g
}

func (g *group) add(it *item) {
	it.memberships = append(it.memberships, membership{g, len(g.members)})
	g.members = append(g.members, member{it, len(it.memberships) - 1})
}

// remove takes out the member at i; the last one takes its place.
func (g *group) remove(i int) {
	last := len(g.members) - 1
	m := g.members[last]
	g.members[i] = m
	m.it.memberships[m.membership].at = i
	g.members[last] = member{}
	g.members = g.members[:last]
	if last == 0 && g.watch != nil && g.watch.groups[g.key] == g {
		delete(g.watch.groups, g.key)
	}
}

// remove ends what add began.
func (w *watches) remove(it *item) {
	for _, at := range it.memberships {
		at.group.remove(at.at)
	}
	clear(it.memberships) // it must not keep whole groups
	it.memberships = it.memberships[:0]
}

// moved notes an event. It costs as much as there are interests.
//
// The list of an interest is bounded by maxEvents: beyond it the events are dropped, and every group that was behind
// counts as helped. That tries some pods in vain and misses none.
func (w *watches) moved(e clusterevent.Event, now time.Time) {
	if w.always != nil && len(w.always.members) > 0 {
		w.help(w.always, now, e.Label)
	}
	for interest, in := range w.byInterest {
		if len(in.groups) == 0 || !interest.Concerns(e) {
			continue
		}
		if len(in.events) == 0 {
			w.behind = append(w.behind, in)
		}
		if len(in.events) == maxEvents {
			in.forget(in.end())
			in.forgot = now
		}
		in.events = append(in.events, happened{e, now})
	}
}

func (w *watch) end() int { return w.first + len(w.events) }

// forget drops the events before a position.
func (w *watch) forget(position int) {
	rest := w.events[position-w.first:]
	w.events, w.first = nil, position
	if len(rest) > 0 {
		w.events = append(w.events, rest...)
	}
}

func (w *watches) help(g *group, at time.Time, event string) {
	if !g.helped {
		g.helped, g.at, g.event = true, at, event
		w.woken = append(w.woken, g)
	}
}

// ask asks a group about the events that it was not asked about, until one helps, and returns their number.
//
// One member answers for all: a group is made of pods from which the Interest reads the same values (Key).
func (w *watches) ask(g *group) (asked int) {
	if g.watch == nil || g.helped || len(g.members) == 0 {
		return 0
	}
	in := g.watch
	if g.asked < in.first {
		w.help(g, in.forgot, forgotten)
		return 0
	}
	for g.asked < in.end() && !g.helped {
		e := &in.events[g.asked-in.first]
		g.asked++
		asked++
		if in.interest.Hint == nil || in.interest.Hint(g.members[0].it.PodInfo, e.Event) { // any of them speaks for all
			w.help(g, e.at, e.Label)
		}
	}
	return asked
}

// any reports whether work may have something to do.
func (w *watches) any() bool { return len(w.behind)+len(w.woken) > 0 }

// work goes on with asking groups about events, and then hands out the pods that were helped, one by one; the caller
// removes it. done says that there was nothing left to do; cost is how many answers of plug-ins it took.
func (w *watches) work() (it *item, cost int, done bool) {
	if len(w.behind) > 0 {
		return nil, w.askOne(w.behind[0]), false
	}
	for len(w.woken) > 0 {
		if g := w.woken[0]; len(g.members) > 0 {
			return g.members[len(g.members)-1].it, 0, false
		}
		w.woken[0] = nil
		w.woken = w.woken[1:]
	}
	w.woken = nil
	return nil, 0, true
}

// askOne asks the next group of the first watch that is behind; when no group is left the events are forgotten.
func (w *watches) askOne(in *watch) (asked int) {
	if in.todo == nil {
		in.todo, in.until = make([]*group, 0, len(in.groups)), in.end()
		for _, g := range in.groups {
			in.todo = append(in.todo, g)
		}
	}
	if last := len(in.todo) - 1; last >= 0 {
		g := in.todo[last]
		in.todo = in.todo[:last]
		return w.ask(g)
	}
	in.todo = nil
	in.forget(max(in.until, in.first))
	if len(in.events) == 0 {
		w.behind = w.behind[1:]
	}
	return 0
}

// helpedAt returns when an event first helped the pod, and the event's label; false if none has.
func (w *watches) helpedAt(it *item) (first time.Time, event string, ok bool) {
	for _, at := range it.memberships {
		g := at.group
		w.ask(g)
		if g.helped && (!ok || g.at.Before(first)) {
			first, event, ok = g.at, g.event, true
		}
	}
	return first, event, ok
}
