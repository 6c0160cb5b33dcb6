// Package store keeps the newest spans within a bound of bytes. It is pure: it reads no clock and writes no files.
//
// There are two kinds of traces. Those of objects are in the order of their last activity, and the oldest go as a whole
// when there is no room. Those of requests and of controllers' rounds are kept for as long as an object links to them
// and go with the last one that does. Before a link comes, they have a small share of the bytes: most requests make no
// object, and must not push out what objects have.
package store

import (
	"container/list"
	"sync"
	"unsafe"

	"bonsai/api/traces"
	of "bonsai/pkg/traces"
)

// Config bounds the store.
type Config struct {
	// MaxBytes bounds all that is kept, with what the Go runtime adds to it.
	MaxBytes int64
	// MaxSpans is how many spans a trace may have. Beyond it, those in the middle go: the first tell how the object
	// began, the last what happens now.
	MaxSpans int
}

// The parts of MaxBytes that one trace may have. With maxLinks requests, an object has at most 3/8 of all: there is
// always room for the newest.
const (
	objectShare = 8
	// requestShare is smaller: a client may send as many requests as it likes under one trace.
	requestShare = 32
	maxLinks     = 8
	// unlinkedShare is for all requests that no object links to, together.
	unlinkedShare = 16
)

// What a trace and a span take beside their texts: their Go values, their entries in maps and lists, and the part of
// each allocation that the allocator rounds up. TestAccounting holds the figures against the heap.
const (
	traceOverhead = int64(unsafe.Sizeof(trace{})) + int64(unsafe.Sizeof(list.Element{})) + 128
	spanOverhead  = int64(unsafe.Sizeof(span{})) + 8
)

// Store is safe for concurrent use.
type Store struct {
	cfg Config

	mu    sync.RWMutex
	bytes int64 // of all traces, at most cfg.MaxBytes
	// unlinkedBytes are those of the traces in unlinked.
	unlinkedBytes int64
	// A client may choose an object's UID as the trace of its request: what it sends is then still no span of the
	// object, nor is the object's what a request links to.
	objects, requests map[of.TraceID]*trace
	// active has the traces of objects, unlinked those of requests without a link, the last active first.
	active, unlinked *list.List
	spans            int
	evicted, cut     uint64
}

// trace is all spans of one object or of one request.
type trace struct {
	id of.TraceID
	// object and owner are zero for a request.
	object traces.Object
	owner  *traces.Object
	spans  []span
	// links are the requests that an object holds, at most maxLinks; none of them twice.
	links []link
	// refs is how many links there are to a request; at 0 it is in unlinked.
	refs       int
	start, end int64
	dropped    int
	bytes      int64         // what the trace is charged with
	position   *list.Element // in active or unlinked; nil for a linked request
}

// span is one span, encoded. Its IDs are beside it, because they are compared often.
type span struct {
	id, parent of.SpanID
	data       []byte // a Record without object and owner
}

// link is an object's link to a request; a zero span means all of it.
type link struct {
	trace of.TraceID
	span  of.SpanID
}

// New returns an empty store.
func New(cfg Config) *Store {
	return &Store{cfg: cfg, objects: map[of.TraceID]*trace{}, requests: map[of.TraceID]*trace{}, active: list.New(),
		unlinked: list.New()}
}

// Stats are figures for metrics.
type Stats struct {
	// Bytes are all that are accounted for. Objects and Requests are the traces, Spans those of both.
	Bytes                    int64
	Objects, Requests, Spans int
	// Evicted is how many traces of objects had to go, Cut how many spans of traces with too many.
	Evicted, Cut uint64
}

// Stats returns the figures of this moment.
func (s *Store) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return Stats{Bytes: s.bytes, Objects: len(s.objects), Requests: len(s.requests), Spans: s.spans, Evicted: s.evicted,
		Cut: s.cut}
}

// Add takes a span. If it is kept, save has the encoded records that a restart needs to bring the store to the same
// state: the span itself, unless it belongs to a request that no object links to yet, and the spans of requests that
// it is the first to link to.
func (s *Store) Add(r *of.Record) (save [][]byte, why of.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Object == nil {
		save, why = s.addRequest(r)
	} else {
		save, why = s.addObject(r)
	}
	s.evict()
	return save, why
}

func (s *Store) addObject(r *of.Record) (save [][]byte, why of.Reason) {
	t, fresh := s.objects[r.Trace], false
	if t == nil {
		t, fresh = &trace{id: r.Trace, start: r.Start, end: r.End,
			object: traces.Object{Namespace: r.Object.Namespace, UID: r.Object.UID}}, true
	}
	if t.object.Namespace != r.Object.Namespace {
		return nil, of.Contradiction
	}
	if why := s.put(t, r, s.cfg.MaxBytes/objectShare); why != of.Kept {
		return nil, why
	}
	if fresh {
		s.objects[t.id], t.position = t, s.active.PushFront(t)
		s.charge(t, traceOverhead+size(t.object.Namespace)+size(string(t.object.UID)))
	} else {
		s.active.MoveToFront(t.position)
	}
	s.learn(t, r)
	save = append(save, r.Encode(nil))
	for _, l := range r.Links {
		if l.Relation == traces.RelationRequest {
			save = append(save, s.link(t, link{l.Trace, l.Span})...)
		}
	}
	return save, of.Kept
}

// learn fills what earlier spans did not say of the object. What one has said stays.
func (s *Store) learn(t *trace, r *of.Record) {
	o := &t.object
	for _, field := range []struct {
		known *string
		said  string
	}{{&o.Group, r.Object.Group}, {&o.Resource, r.Object.Resource}, {&o.Kind, r.Object.Kind},
		{&o.Name, r.Object.Name}} {
		if *field.known == "" && field.said != "" {
			*field.known = field.said
			s.charge(t, size(field.said))
		}
	}
	if t.owner == nil && r.Owner != nil {
		owner := *r.Owner
		t.owner = &owner
		s.charge(t, int64(unsafe.Sizeof(owner))+size(owner.Group)+size(owner.Resource)+size(owner.Kind)+
			size(owner.Namespace)+size(owner.Name)+size(string(owner.UID)))
	}
}

// link has an object hold a request, which may not have come yet, and returns the request's spans if nobody held it. An
// object that holds as many as it may takes no more: the first have made it.
func (s *Store) link(t *trace, l link) (save [][]byte) {
	if len(t.links) >= maxLinks {
		return nil
	}
	for _, other := range t.links {
		if other == l {
			return nil
		}
	}
	before := int64(cap(t.links))
	t.links = append(t.links, l)
	s.charge(t, (int64(cap(t.links))-before)*int64(unsafe.Sizeof(l)))
	q := s.requests[l.trace]
	if q == nil {
		q = &trace{id: l.trace, refs: 1}
		s.requests[q.id] = q
		s.charge(q, traceOverhead)
		return nil
	}
	if q.refs == 0 {
		s.unlinked.Remove(q.position)
		s.unlinkedBytes -= q.bytes
		q.position = nil
		for _, span := range q.spans {
			save = append(save, span.data)
		}
	}
	q.refs++
	return save
}

func (s *Store) addRequest(r *of.Record) (save [][]byte, why of.Reason) {
	q, fresh := s.requests[r.Trace], false
	if q == nil {
		q, fresh = &trace{id: r.Trace}, true
	}
	linked := q.refs > 0
	if len(q.spans) == 0 {
		q.start, q.end = r.Start, r.End
	}
	before := q.bytes
	if why := s.put(q, r, s.cfg.MaxBytes/requestShare); why != of.Kept {
		return nil, why
	}
	if fresh {
		s.requests[q.id] = q
		s.charge(q, traceOverhead)
		q.position = s.unlinked.PushFront(q)
	}
	if linked {
		return [][]byte{r.Encode(nil)}, of.Kept
	}
	s.unlinked.MoveToFront(q.position)
	s.unlinkedBytes += q.bytes - before
	for s.unlinkedBytes > s.cfg.MaxBytes/unlinkedShare {
		s.forgetUnlinked()
	}
	return nil, of.Kept
}

// put adds a span to a trace that may have most bytes, and takes spans from its middle until it does.
func (s *Store) put(t *trace, r *of.Record, most int64) of.Reason {
	for _, span := range t.spans {
		if span.id == r.ID {
			return of.Duplicate
		}
	}
	bare := *r
	bare.Object, bare.Owner = nil, nil
	data := bare.Encode(nil)
	added := span{id: r.ID, parent: r.Parent, data: append(make([]byte, 0, len(data)), data...)}
	if added.size() > most/4 {
		return of.TooLarge
	}
	for len(t.spans) > 0 && (len(t.spans) >= s.cfg.MaxSpans || t.bytes+added.size() > most-most/8) {
		s.cutMiddle(t)
	}
	before := cap(t.spans)
	t.spans = append(t.spans, added)
	s.charge(t, added.size()+int64(cap(t.spans)-before)*spanOverhead)
	s.spans++
	t.start, t.end = min(t.start, r.Start), max(t.end, r.End)
	return of.Kept
}

// cutMiddle drops one span of a trace.
func (s *Store) cutMiddle(t *trace) {
	i := len(t.spans) / 2
	s.charge(t, -t.spans[i].size())
	copy(t.spans[i:], t.spans[i+1:])
	t.spans[len(t.spans)-1] = span{}
	t.spans = t.spans[:len(t.spans)-1]
	t.dropped++
	s.cut++
	s.spans--
}

// size is what a span's encoding takes: the allocator rounds up by up to an eighth.
func (s span) size() int64 { return int64(len(s.data)+len(s.data)/8) + 8 }

// size is what a text takes.
func size(text string) int64 {
	if text == "" {
		return 0
	}
	return int64(len(text)+len(text)/8) + 8
}

func (s *Store) charge(t *trace, bytes int64) {
	t.bytes += bytes
	s.bytes += bytes
}

// evict brings the store within its bytes.
func (s *Store) evict() {
	for s.bytes > s.cfg.MaxBytes {
		switch oldest := s.active.Back(); {
		case oldest != nil:
			s.forget(oldest.Value.(*trace))
		case s.unlinked.Len() > 0:
			s.forgetUnlinked()
		default:
			return // unreachable: what is linked has an object
		}
	}
}

// forget removes the trace of an object, and the requests that nobody else holds.
func (s *Store) forget(t *trace) {
	s.active.Remove(t.position)
	delete(s.objects, t.id)
	s.bytes -= t.bytes
	s.spans -= len(t.spans)
	s.evicted++
	for _, l := range t.links {
		q := s.requests[l.trace]
		if q.refs--; q.refs == 0 {
			delete(s.requests, q.id)
			s.bytes -= q.bytes
			s.spans -= len(q.spans)
		}
	}
}

// forgetUnlinked removes the request that was active longest ago, of those without a link.
func (s *Store) forgetUnlinked() {
	q := s.unlinked.Remove(s.unlinked.Back()).(*trace)
	delete(s.requests, q.id)
	s.bytes -= q.bytes
	s.unlinkedBytes -= q.bytes
	s.spans -= len(q.spans)
}
