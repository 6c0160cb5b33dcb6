package history

import (
	"maps"
	"slices"
	"testing"
)

// sound is a history without a fault: two objects, a removal, an unanswered patch, a watcher that had to list again and
// missed the versions from 7 to 9, and one that missed nothing.
func sound() history {
	a5 := object{"a", "ua", "m1", 5}
	a6 := object{"a", "ua", "m2", 6}
	b7 := object{"b", "ub", "m3", 7}
	a8 := object{"a", "ua", "m4", 8}
	a9 := object{"a", "ua", "m4", 9} // the end of a
	b11 := object{"b", "ub", "m5", 11}
	e12 := object{"end", "ue", "m6", 12}
	empty := list{version: 4, begun: 1, ended: 2}
	return history{
		writes: []write{
			{verb: create, name: "a", outcome: done, mark: "m1", version: 5, uid: "ua", begun: 3, ended: 4},
			{verb: create, name: "a", outcome: refused, mark: "x1", begun: 5, ended: 6},
			{verb: update, name: "a", outcome: done, mark: "m2", base: 5, version: 6, uid: "ua", begun: 7, ended: 9},
			{verb: create, name: "b", outcome: done, mark: "m3", version: 7, uid: "ub", begun: 10, ended: 12},
			{verb: patch, name: "a", outcome: unknown, mark: "m4", begun: 11, ended: 16},
			{verb: patch, name: "a", outcome: unknown, mark: "x2", begun: 13, ended: 17},
			{verb: remove, name: "a", outcome: done, uid: "ua", begun: 18, ended: 20},
			{verb: remove, name: "a", outcome: refused, uid: "ua", begun: 19, ended: 21},
			{verb: patch, name: "b", outcome: done, mark: "m5", version: 11, uid: "ub", begun: 30, ended: 32},
			{verb: create, name: "end", outcome: done, mark: "m6", version: 12, uid: "ue", begun: 40, ended: 42},
		},
		lists: []list{{version: 8, items: byName(a8, b7), begun: 14, ended: 17},
			{version: 11, items: byName(b11), begun: 33, ended: 34}},
		watchers: []watcher{
			{name: "w1", segments: []segment{{from: empty, last: 12, events: []event{
				{added, a5, 5}, {modified, a6, 8}, {added, b7, 13}, {modified, a8, 15}, {deleted, a9, 20},
				{modified, b11, 31}, {added, e12, 43},
			}}}},
			{name: "w2", segments: []segment{
				{from: empty, last: 6, events: []event{{added, a5, 6}, {modified, a6, 9}}},
				{from: list{version: 9, items: byName(b7), begun: 22, ended: 23}, last: 12,
					events: []event{{modified, b11, 33}, {added, e12, 44}}},
			}},
		},
		end: 12,
	}
}

func byName(objects ...object) map[string]object {
	m := map[string]object{}
	for _, o := range objects {
		m[o.name] = o
	}
	return m
}

// events are those of the watcher that missed nothing.
func events(h *history) *[]event { return &h.watchers[0].segments[0].events }

// onlyGaps leaves the watcher that missed versions 7 to 9.
func onlyGaps(h *history) { h.watchers = h.watchers[1:] }

// both changes an event for every watcher that has it.
func both(h *history, version uint64, change func(*event)) {
	for _, w := range h.watchers {
		for _, s := range w.segments {
			for i := range s.events {
				if s.events[i].object.version == version {
					change(&s.events[i])
				}
			}
		}
	}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name   string
		change func(*history)
		want   kind // "": sound
	}{
		{"nothing", func(*history) {}, ""},
		{"versions that no watcher covers", onlyGaps, ""},
		{"a bookmark beyond the last event", func(h *history) {
			h.watchers[1].segments[0].last = 6
			h.watchers[0].segments[0].last = 15
		}, ""},
		{"a lost removal that happened", func(h *history) { h.writes[6].outcome = unknown }, ""},
		{"an update answered with an older version", func(h *history) { h.writes[2].version = 4 }, versionsGoBack},
		{"two writes of one version", func(h *history) { h.writes[3].version = 6 }, versionTwice},
		{"an update over somebody's change", func(h *history) { h.writes[2].base = 3 }, lostUpdate},
		{"two confirmed removals", func(h *history) { h.writes[7].outcome = done }, removedTwice},
		{"an acknowledged write that a watcher was not told of", func(h *history) {
			*events(h) = slices.Delete(*events(h), 2, 3)
		}, eventLost},
		{"an acknowledged write that nobody was told of", func(h *history) {
			*events(h) = slices.Delete(*events(h), 5, 6)
			h.watchers[1].segments[1].events = h.watchers[1].segments[1].events[1:]
		}, eventLost},
		{"an unanswered write that one watcher was told of", func(h *history) {
			h.watchers[1].segments[0].last = 8
			h.watchers[1].segments[0].events = append(h.watchers[1].segments[0].events,
				event{added, object{"b", "ub", "m3", 7}, 14})
		}, eventLost},
		{"a confirmed removal that nobody was told of", func(h *history) {
			*events(h) = slices.Delete(*events(h), 4, 5)
			h.lists = h.lists[:1]
		}, eventLost},
		{"events that change places", func(h *history) { e := *events(h); e[1], e[2] = e[2], e[1] }, eventOrder},
		{"an event before the list that the watch goes on from", func(h *history) {
			s := &h.watchers[1].segments[1]
			s.events = slices.Insert(s.events, 0, event{added, object{"b", "ub", "m3", 7}, 24})
		}, eventOrder},
		{"an event twice", func(h *history) {
			*events(h) = slices.Insert(*events(h), 2, (*events(h))[1])
		}, eventDoubled},
		{"an unanswered write that happens twice", func(h *history) {
			*events(h) = slices.Insert(*events(h), 6, event{modified, object{"b", "ub", "m5", 10}, 30})
		}, eventDoubled},
		{"a change told as a creation", func(h *history) { both(h, 6, func(e *event) { e.typ = added }) }, wrongType},
		{"a removal with another state than the last", func(h *history) {
			both(h, 9, func(e *event) { e.object.mark = "m2" })
		}, wrongType},
		{"a refused write in a watch", func(h *history) {
			both(h, 8, func(e *event) { e.object.mark = "x1" })
		}, neverWritten},
		{"a state that nobody wrote", func(h *history) {
			both(h, 8, func(e *event) { e.object.mark = "?" })
		}, neverWritten},
		{"a state before it was written", func(h *history) {
			both(h, 8, func(e *event) { e.seen = 10 })
		}, neverWritten},
		{"a state written to another object", func(h *history) { h.writes[4].name = "b" }, neverWritten},
		{"a removal that nobody asked for", func(h *history) { h.writes[6].outcome = refused }, neverWritten},
		{"a list with what nobody wrote", func(h *history) {
			onlyGaps(h)
			h.lists[0].items = byName(object{"a", "ua", "?", 8})
		}, neverWritten},
		{"watchers told differently", func(h *history) { (*events(h))[1].object.mark = "m1" }, eventsDiffer},
		{"a writer told differently", func(h *history) {
			h.writes[8].version = 12
			h.writes[9].version = 13
		}, eventsDiffer},
		{"a watcher that stays behind", func(h *history) {
			h.watchers[1].segments = h.watchers[1].segments[:1]
		}, behindTheEnd},
		{"a watcher that never began", func(h *history) { h.watchers[1].segments = nil }, behindTheEnd},
		{"a list older than an answer", func(h *history) {
			h.lists[1].version = 9
			h.lists[1].items = byName(object{"b", "ub", "m3", 7})
		}, listStale},
		{"a list that lacks an object", func(h *history) { delete(h.lists[0].items, "b") }, listWrong},
		{"a list with an older state", func(h *history) {
			h.lists[0].items["a"] = object{"a", "ua", "m2", 6}
		}, listWrong},
		{"a list with a later state", func(h *history) { onlyGaps(h); h.lists[0].version = 7 }, listWrong},
		{"an acknowledged creation that no list and no watcher has", func(h *history) {
			onlyGaps(h)
			delete(h.lists[0].items, "b")
		}, writeForgotten},
		{"an acknowledged update undone", func(h *history) {
			onlyGaps(h)
			h.lists[0].items["a"] = object{"a", "ua", "m1", 5}
		}, writeForgotten},
		{"a removed object in a list", func(h *history) {
			onlyGaps(h)
			maps.Copy(h.lists[1].items, byName(object{"a", "ua", "m4", 8}))
		}, removedShown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := sound()
			tt.change(&h)
			found := check(h)
			if tt.want == "" && len(found) > 0 {
				t.Errorf("found in a sound history: %v", found)
			}
			if tt.want != "" && !slices.ContainsFunc(found, func(v violation) bool { return v.kind == tt.want }) {
				t.Errorf("found %v, want %q", found, tt.want)
			}
		})
	}
}
