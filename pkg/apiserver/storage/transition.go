package storage

// Seen says how a watcher with filter sees a change from prev to cur: as an event type, or "" for not at all. prev is
// nil for a key that was free, cur is nil for one that is now. A nil filter keeps all. The filter sees both items: a
// watcher with a selector has only what matches, so a change that leaves the selection must look like a deletion to it.
func Seen(filter func(*Item) bool, prev, cur *Item) EventType {
	had := prev != nil && (filter == nil || filter(prev))
	has := cur != nil && (filter == nil || filter(cur))
	switch {
	case had && has:
		return Modified
	case has:
		return Added
	case had:
		return Deleted
	}
	return ""
}

// At returns a copy of the item with its variants and without its encodings, at another revision: what a Deleted event
// carries. Clients resume a watch from the version of the last event, which must be that of the deletion. Variants
// stay, as a webhook that made them may be out of reach now. Encodings go, as they have the old revision in them.
func (i *Item) At(revision int64) *Item {
	out := &Item{Key: i.Key, Revision: revision, Facts: i.Facts, own: i.own, sealed: i.sealed}
	for e := i.encodings.Load(); e != nil; e = e.next {
		if e.variant != nil {
			out.AddVariant(e.form, e.variant.At(revision))
		}
	}
	return out
}
