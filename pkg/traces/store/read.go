package store

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/traces"
	of "bonsai/pkg/traces"
)

// Get returns the trace of the object with this UID, with its spans, by start and then by ID.
func (s *Store) Get(uid types.UID) (*traces.Trace, bool) {
	id, ok := of.TraceOf(uid)
	if !ok {
		return nil, false
	}
	s.mu.RLock()
	t := s.objects[id]
	if t == nil {
		s.mu.RUnlock()
		return nil, false
	}
	out, shown := t.summary(), s.shown(t, map[of.TraceID]family{})
	s.mu.RUnlock()
	// Encodings never change: they can be read without the lock.
	for _, data := range shown {
		r, err := of.Decode(data)
		if err != nil {
			continue // unreachable: it was encoded here
		}
		out.Spans = append(out.Spans, r.Span())
	}
	out.SpanCount = len(out.Spans)
	slices.SortFunc(out.Spans, func(a, b traces.Span) int {
		return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.ID, b.ID), strings.Compare(a.TraceID, b.TraceID))
	})
	return &out, true
}

// List returns a page of traces without their spans, in the order of Positions, or the slowest first.
func (s *Store) List(q of.Query) of.Page {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found []*trace
	if id, ok := of.TraceOf(q.UID); q.UID != "" {
		if t := s.objects[id]; ok && t != nil && t.matches(&q) {
			found = append(found, t)
		}
	} else {
		for _, t := range s.objects {
			if t.matches(&q) {
				found = append(found, t)
			}
		}
	}
	most := q.Limit
	if q.Slowest > 0 {
		most = q.Slowest
		if q.Limit > 0 {
			most = min(most, q.Limit)
		}
		slices.SortFunc(found, func(a, b *trace) int {
			return cmp.Or(cmp.Compare(b.end-b.start, a.end-a.start), a.compare(b))
		})
	} else {
		slices.SortFunc(found, (*trace).compare)
	}
	page := of.Page{}
	if most > 0 && len(found) > most {
		page.Remaining = len(found) - most
		found = found[:most]
	}
	families := map[of.TraceID]family{} // many objects may be of one request
	for _, t := range found {
		out := t.summary()
		out.SpanCount = len(s.shown(t, families))
		page.Traces = append(page.Traces, out)
	}
	return page
}

// Resources returns the resources whose objects have traces that a query selects, those with the most traces first.
func (s *Store) Resources(q of.Query) []schema.GroupResource {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found := map[schema.GroupResource]int{}
	for _, t := range s.objects {
		if t.matches(&q) {
			found[t.resource()]++
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(found[b], found[a]), strings.Compare(a.Group, b.Group),
			strings.Compare(a.Resource, b.Resource))
	})
}

func (t *trace) resource() schema.GroupResource {
	return schema.GroupResource{Group: t.object.Group, Resource: t.object.Resource}
}

// at is where the trace stands in lists.
func (t *trace) at() of.Position {
	return of.Position{Namespace: t.object.Namespace, Name: t.object.Name, UID: string(t.object.UID)}
}

func (t *trace) compare(other *trace) int {
	a, b := t.at(), other.at()
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
		strings.Compare(a.UID, b.UID))
}

func (t *trace) matches(q *of.Query) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	o := &t.object
	return q.Cluster == (o.Namespace == "") && is(q.Namespace, o.Namespace) && is(q.Kind, o.Kind) &&
		is(q.Resource, o.Resource) && is(q.Name, o.Name) && is(string(q.UID), string(o.UID)) && t.end >= q.Since &&
		!q.Hidden[t.resource()] && (q.After == of.Position{} || q.After.Less(t.at()))
}

// summary is the trace as the API shows it, without spans.
func (t *trace) summary() traces.Trace {
	start, end := time.Unix(0, t.start).UTC(), time.Unix(0, t.end).UTC()
	out := traces.Trace{Object: t.object, DroppedSpans: t.dropped, LastSeen: end,
		ObjectMeta: metav1.ObjectMeta{Name: string(t.object.UID), Namespace: t.object.Namespace,
			CreationTimestamp: metav1.NewTime(start)}}
	if t.owner != nil {
		owner := *t.owner
		out.Owner = &owner
	}
	return out
}

// shown returns the encodings of an object's spans, and of those spans that its links lead to. families are the
// requests that have been looked at before, under the same lock.
func (s *Store) shown(t *trace, families map[of.TraceID]family) [][]byte {
	out := make([][]byte, 0, len(t.spans))
	for _, span := range t.spans {
		out = append(out, span.data)
	}
	done := map[of.TraceID]bool{}
	for _, l := range t.links {
		if done[l.trace] {
			continue
		}
		done[l.trace] = true
		var spans []of.SpanID
		for _, other := range t.links {
			if other.trace == l.trace {
				spans = append(spans, other.span)
			}
		}
		request := s.requests[l.trace]
		f, ok := families[l.trace]
		if !ok {
			f = request.family()
			families[l.trace] = f
		}
		out = append(out, request.around(f, spans)...)
	}
	return out
}

// family says where the spans of a request are, by ID and by parent.
type family struct {
	byID     map[of.SpanID]int
	children map[of.SpanID][]int
}

func (t *trace) family() family {
	f := family{map[of.SpanID]int{}, map[of.SpanID][]int{}}
	for i, span := range t.spans {
		f.byID[span.id] = i
		f.children[span.parent] = append(f.children[span.parent], i)
	}
	return f
}

// around returns the spans of a request that belong to some of its spans: these, what they enclose, and what encloses
// them. What a client did beside them under the same trace, such as the other objects of a "kubectl apply", is not for
// readers of this object. A zero ID is all spans.
func (t *trace) around(f family, ids []of.SpanID) [][]byte {
	in := make([]bool, len(t.spans))
	for _, id := range ids {
		if id == (of.SpanID{}) {
			for i := range in {
				in[i] = true
			}
			continue
		}
		seen := map[of.SpanID]bool{} // a broken sender may send circles
		for up := id; !seen[up]; {
			seen[up] = true
			i, ok := f.byID[up]
			if !ok {
				break
			}
			in[i] = true
			up = t.spans[i].parent
		}
		seen = map[of.SpanID]bool{id: true}
		for next := []of.SpanID{id}; len(next) > 0; {
			parent := next[0]
			next = next[1:]
			for _, i := range f.children[parent] {
				in[i] = true
				if child := t.spans[i].id; !seen[child] {
					seen[child] = true
					next = append(next, child)
				}
			}
		}
	}
	var out [][]byte
	for i, span := range t.spans {
		if in[i] {
			out = append(out, span.data)
		}
	}
	return out
}
