package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// kind names the promise that was broken.
type kind string

const (
	versionsGoBack kind = "versions go back"    // an answer has a version not above that of an earlier answer
	versionTwice   kind = "version twice"       // two writes have one version
	lostUpdate     kind = "lost update"         // an update replaced another version than the one it was based on
	removedTwice   kind = "removed twice"       // two removals of one object were both done
	eventLost      kind = "event lost"          // a watcher was not told of a version that it passed
	eventOrder     kind = "event out of order"  // a watcher's versions do not rise
	eventDoubled   kind = "event doubled"       // a watcher was told of a version again, or a write happened twice
	wrongType      kind = "event of wrong type" // the type does not fit the state before
	neverWritten   kind = "never written"       // a state that no write, or only a refused or later one, explains
	// two watchers, or a watcher and a writer, were told differently of one version
	eventsDiffer kind = "events differ"
	behindTheEnd kind = "watcher left behind" // a watcher did not reach the end
	listStale    kind = "list stale"          // a list is older than an answer given before it began
	listWrong    kind = "list of wrong state" // a list is not the state at its version
	// an acknowledged write is in no later list, and nothing removed the object
	writeForgotten kind = "write not in list"
	removedShown   kind = "removed object shown" // a list shows what was removed before it began
)

// violation is a broken promise and where it shows.
type violation struct {
	kind kind
	text string
}

func (v violation) String() string { return string(v.kind) + ": " + v.text }

// check returns every promise of the API that the history shows broken:
//   - Versions rise in the order of answers, and no two writes share one (API concepts, "Resource versions").
//   - A watch tells of every change after its version, once and in order ("Efficient detection of changes").
//   - An update with a resourceVersion replaces that version or nothing.
//   - A list without a resourceVersion is at least as new as anything answered before it began.
//   - What was refused did not happen; what was neither confirmed nor refused happened once or not at all.
func check(h history) []violation {
	c := &checker{history: h, byMark: map[string]*write{}, removals: map[string][]*write{}, known: map[uint64]event{},
		marked: map[string]uint64{}, gone: map[string]uint64{}}
	c.index()
	c.checkAnswers()
	c.collect()
	for _, w := range h.watchers {
		c.checkWatcher(w)
	}
	c.checkLists()
	return c.found
}

type checker struct {
	history
	found []violation
	// byMark finds the write of a state, removals the ones aimed at an object.
	byMark   map[string]*write
	removals map[string][]*write
	// known has what was told of each version, with the earliest moment; marked and gone have the version at which each
	// write and each end of an object was first seen.
	known        map[uint64]event
	marked, gone map[string]uint64
	// versions are those of all events and acknowledged writes, sorted.
	versions []uint64
	// all are the lists of listers and watchers by version.
	all []list
}

func (c *checker) report(k kind, format string, args ...any) {
	c.found = append(c.found, violation{k, fmt.Sprintf(format, args...)})
}

func (c *checker) index() {
	for i := range c.writes {
		w := &c.writes[i]
		if w.verb == remove {
			c.removals[w.uid] = append(c.removals[w.uid], w)
		} else {
			c.byMark[w.mark] = w
		}
	}
	c.all = slices.Clone(c.lists)
	for _, w := range c.watchers {
		for _, s := range w.segments {
			c.all = append(c.all, s.from)
		}
	}
	slices.SortStableFunc(c.all, func(a, b list) int { return cmp.Compare(a.version, b.version) })
}

// answer is a moment at which a client knew that the server had reached a version.
type answer struct {
	version      uint64
	begun, ended int64
	list         bool
	text         string
}

// checkAnswers compares versions with the order of the answers that carried them.
func (c *checker) checkAnswers() {
	var answers []answer
	owner := map[uint64]string{}
	for _, w := range c.writes {
		if w.outcome != done || w.verb == remove {
			continue
		}
		text := fmt.Sprintf("%s of %s (%s)", w.verb, w.name, w.mark)
		answers = append(answers, answer{w.version, w.begun, w.ended, false, text})
		if other := owner[w.version]; other != "" {
			c.report(versionTwice, "%d is that of %s and of %s", w.version, other, text)
		}
		owner[w.version] = text
	}
	for _, l := range c.all {
		answers = append(answers, answer{l.version, l.begun, l.ended, true, "a list"})
	}
	for _, removals := range c.removals {
		confirmed := 0
		for _, w := range removals {
			if w.outcome == done {
				confirmed++
			}
		}
		if confirmed > 1 {
			c.report(removedTwice, "%d removals of %s (%s) were confirmed", confirmed, removals[0].name,
				removals[0].uid)
		}
	}
	ended := slices.Clone(answers)
	slices.SortFunc(ended, func(a, b answer) int { return cmp.Compare(a.ended, b.ended) })
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(a.begun, b.begun) })
	// newest is the answer of the highest version among those given before a began.
	var newest answer
	for _, a := range answers {
		for len(ended) > 0 && ended[0].ended < a.begun {
			if ended[0].version > newest.version {
				newest = ended[0]
			}
			ended = ended[1:]
		}
		switch {
		case a.list && a.version < newest.version:
			c.report(listStale, "a list begun at %d has version %d, but %s had %d before", a.begun, a.version,
				newest.text, newest.version)
		case !a.list && a.version <= newest.version:
			c.report(versionsGoBack, "%s has version %d, but %s had %d before", a.text, a.version, newest.text,
				newest.version)
		}
	}
}

// collect puts together what all watchers were told, and holds it against what was written.
func (c *checker) collect() {
	for _, w := range c.watchers {
		for _, s := range w.segments {
			for _, e := range s.events {
				first, ok := c.known[e.object.version]
				if !ok {
					c.known[e.object.version] = e
				} else if first.typ != e.typ || first.object != e.object {
					c.report(eventsDiffer, "%s was told of %s %+v, another watcher of %s %+v", w.name, e.typ, e.object,
						first.typ, first.object)
				} else if e.seen < first.seen {
					c.known[e.object.version] = e
				}
			}
		}
	}
	for _, w := range c.writes {
		if w.outcome == done && w.verb != remove {
			if e, ok := c.known[w.version]; ok && (e.typ == deleted || e.object.mark != w.mark) {
				c.report(eventsDiffer, "%s of %s was answered with version %d, of which watchers were told %s %+v",
					w.verb, w.name, w.version, e.typ, e.object)
			}
			c.versions = append(c.versions, w.version)
		}
	}
	c.versions = slices.AppendSeq(c.versions, maps.Keys(c.known))
	slices.Sort(c.versions)
	c.versions = slices.Compact(c.versions)
	for _, v := range c.versions {
		if e, ok := c.known[v]; ok {
			c.explain(e)
		}
	}
}

// explain looks for the write behind an event.
func (c *checker) explain(e event) {
	o := e.object
	if e.typ == deleted {
		if !slices.ContainsFunc(c.removals[o.uid], func(w *write) bool {
			return w.outcome != refused && w.begun < e.seen && w.name == o.name
		}) {
			c.report(neverWritten, "%s (%s) ended at %d, but nobody removed it", o.name, o.uid, o.version)
		}
		c.once(c.gone, o.uid, o, "end")
		return
	}
	w := c.byMark[o.mark]
	if w == nil || w.outcome == refused || w.begun > e.seen || w.name != o.name {
		c.report(neverWritten, "watchers were told of %s %+v, which comes from no write before", e.typ, o)
		return
	}
	c.once(c.marked, o.mark, o, "write "+o.mark)
	if (w.verb == create) != (e.typ == added) {
		c.report(wrongType, "%s of %s is told as %s at %d", w.verb, o.name, e.typ, o.version)
	}
}

// once sees to it that a change has one version.
func (c *checker) once(seen map[string]uint64, key string, o object, what string) {
	if before, ok := seen[key]; ok {
		c.report(eventDoubled, "the %s of %s happened at %d and at %d", what, o.name, before, o.version)
		return
	}
	seen[key] = o.version
}

func (c *checker) checkWatcher(w watcher) {
	for _, s := range w.segments {
		c.checkSegment(w.name, s)
	}
	if n := len(w.segments); n == 0 || w.segments[n-1].last < c.end {
		c.report(behindTheEnd, "%s did not reach version %d", w.name, c.end)
	}
}

// checkSegment replays what a watcher was told, from the list on.
func (c *checker) checkSegment(watcher string, s segment) {
	state := maps.Clone(s.from.items)
	if state == nil {
		state = map[string]object{}
	}
	told := map[uint64]bool{}
	last := s.from.version
	next, _ := slices.BinarySearchFunc(c.all, last, func(l list, v uint64) int { return cmp.Compare(l.version, v) })
	// passed compares the lists below a version with the state.
	passed := func(below uint64) {
		for ; next < len(c.all) && c.all[next].version < below; next++ {
			if l := c.all[next]; !maps.Equal(l.items, state) {
				c.report(listWrong, "a list at %d has %s", l.version, difference(l.items, state))
			}
		}
	}
	for _, e := range s.events {
		o := e.object
		switch {
		case told[o.version]:
			c.report(eventDoubled, "%s was told of %s %+v again", watcher, e.typ, o)
			continue
		case o.version <= last:
			c.report(eventOrder, "%s was told of %s %+v after version %d", watcher, e.typ, o, last)
			told[o.version] = true
			continue
		}
		passed(o.version)
		told[o.version], last = true, o.version
		before, exists := state[o.name]
		if e.typ == added && exists || e.typ != added && (!exists || before.uid != o.uid) ||
			e.typ == deleted && before.mark != o.mark {
			c.report(wrongType, "%s was told of %s %+v, while the object was %+v", watcher, e.typ, o, before)
		}
		if w := c.byMark[o.mark]; w != nil && e.typ == modified && w.verb == update && w.base != before.version {
			c.report(lostUpdate, "update %s of %s at %d was based on %d and replaced %d", o.mark, o.name, o.version,
				w.base, before.version)
		}
		if e.typ == deleted {
			delete(state, o.name)
		} else {
			state[o.name] = o
		}
	}
	passed(s.last + 1)
	for _, v := range c.versions {
		if v > s.from.version && v <= s.last && !told[v] {
			c.report(eventLost, "%s passed version %d and was not told of it (%+v)", watcher, v, c.known[v].object)
		}
	}
	c.checkRemovals(watcher, s, state)
}

// checkRemovals finds removals that a watcher which reached the end was not told of: they have no version that could be
// missed.
func (c *checker) checkRemovals(watcher string, s segment, state map[string]object) {
	if s.last < c.end {
		return
	}
	for _, o := range state {
		if slices.ContainsFunc(c.removals[o.uid], func(w *write) bool { return w.outcome == done }) {
			c.report(eventLost, "%s was not told that %s (%s) was removed", watcher, o.name, o.uid)
		}
	}
}

// checkLists holds every list against the writes answered before it began, also those that no watcher saw.
func (c *checker) checkLists() {
	for _, l := range c.all {
		shown := map[string]object{}
		for _, o := range l.items {
			shown[o.uid] = o
			w := c.byMark[o.mark]
			if w == nil || w.outcome == refused || w.begun > l.ended || w.name != o.name ||
				w.outcome == done && w.version != o.version {
				c.report(neverWritten, "a list at %d shows %+v, which comes from no write before", l.version, o)
			}
			if o.version > l.version {
				c.report(listWrong, "a list at %d shows the later %+v", l.version, o)
			}
		}
		for _, w := range c.writes {
			if w.outcome != done || w.ended >= l.begun {
				continue
			}
			o, ok := shown[w.uid]
			switch {
			case w.verb == remove && ok:
				c.report(removedShown, "a list at %d shows %+v", l.version, o)
			case w.verb != remove && ok && o.version < w.version:
				c.report(writeForgotten, "a list at %d shows %+v, but %s %s had version %d before", l.version, o,
					w.verb, w.mark, w.version)
			case w.verb != remove && !ok && !slices.ContainsFunc(c.removals[w.uid], func(r *write) bool {
				return r.outcome != refused && r.begun < l.ended
			}):
				c.report(writeForgotten, "a list at %d has no %s (%s), but %s %s had version %d before", l.version,
					w.name, w.uid, w.verb, w.mark, w.version)
			}
		}
	}
}

// difference says for the first name, in order, how a list differs from the state.
func difference(items, state map[string]object) string {
	names := slices.Collect(maps.Keys(items))
	names = slices.AppendSeq(names, maps.Keys(state))
	slices.Sort(names)
	for _, n := range names {
		if items[n] != state[n] {
			return fmt.Sprintf("%+v where the watch says %+v", items[n], state[n])
		}
	}
	return "no difference"
}
