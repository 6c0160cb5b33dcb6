// Package store keeps the newest spans within a bound of bytes. It is pure: it reads no clock and writes no files.
//
// There are two kinds of traces. Those of objects are in the order of their last activity, and the oldest go as a whole
// when there is no room. Those of requests and of controllers' rounds are kept for as long as an object links to them
// and go with the last one that does. Before a link comes, they have a small share of the bytes: most requests make no
// object, and must not push out what objects have.
//
// A node must not push out what others sent, either. All nodes together have nodesShare of the bytes: beyond it the
// node that holds the most loses its own spans, those of the trace where it was active longest ago first. So a node
// always keeps its equal part of that share, whatever other nodes send. What a node sends is of objects alone, and
// holds no requests.
package store

import (
	"bytes"
	"container/list"
	"slices"
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
	// nodesShare is for all that nodes sent, together, when there is no room for all.
	nodesShare = 2
)

// What a trace, a node's part of one and a span take beside their texts: their Go values, their entries in maps and
// lists, and the part of each allocation that the allocator rounds up. TestAccounting holds the figures against the
// heap.
const (
	traceOverhead = int64(unsafe.Sizeof(trace{})) + int64(unsafe.Sizeof(list.Element{})) + 128
	partOverhead  = int64(unsafe.Sizeof(part{})) + int64(unsafe.Sizeof(list.Element{})) + 24
	spanOverhead  = int64(unsafe.Sizeof(span{})) + 8
	linkOverhead  = int64(unsafe.Sizeof(link{}))
)

// Store is safe for concurrent use.
type Store struct {
	cfg Config

	mu    sync.RWMutex
	bytes int64 // of all traces, at most cfg.MaxBytes
	// unlinkedBytes are those of the traces in unlinked, nodeBytes those of all nodes.
	unlinkedBytes, nodeBytes int64
	// A client may choose an object's UID as the trace of its request: what it sends is then still no span of the
	// object, nor is the object's what a request links to.
	objects, requests map[of.TraceID]*trace
	// active has the traces of objects, unlinked those of requests without a link, the last active first.
	active, unlinked *list.List
	// nodes are those that have parts.
	nodes                  map[string]*node
	spans                  int
	evicted, cut, overfull uint64
	// encoded is where the record that is added is encoded.
	encoded []byte
}

// trace is all spans of one object or of one request.
type trace struct {
	id of.TraceID
	// object and owner are zero for a request.
	object traces.Object
	owner  *traces.Object
	spans  []span
	// parts are those of the nodes that sent some of spans. The control plane sent the others.
	parts []*part
	// links are the requests that an object holds, at most maxLinks; none of them twice.
	links []link
	// refs is how many links there are to a request; at 0 it is in unlinked.
	refs       int
	start, end int64
	dropped    int
	bytes      int64 // what the trace is charged with
	// own is what of bytes is for no span and no part. It is the first node's if the control plane sent none of spans.
	own      int64
	bearer   *part
	position *list.Element // in active or unlinked; nil for a linked request
}

// node is one that sends spans.
type node struct {
	name  string
	bytes int64 // of parts
	// parts has its parts of traces, the last active first.
	parts *list.List
}

// part is what a node sent of one trace.
type part struct {
	node     *node
	trace    *trace
	spans    int
	bytes    int64
	position *list.Element // in node.parts
}

// span is one span, encoded. Its IDs are beside it, because they are compared often.
type span struct {
	id, parent of.SpanID
	data       []byte // a Record without object, owner and sender
	from       *part  // nil: the control plane sent it
}

// link is an object's link to a request; a zero span means all of it.
type link struct {
	trace of.TraceID
	span  of.SpanID
}

// New returns an empty store.
func New(cfg Config) *Store {
	return &Store{cfg: cfg, objects: map[of.TraceID]*trace{}, requests: map[of.TraceID]*trace{}, active: list.New(),
		unlinked: list.New(), nodes: map[string]*node{}}
}

// Stats are figures for metrics.
type Stats struct {
	// Bytes are all that are accounted for. Objects and Requests are the traces, Spans those of both.
	Bytes                    int64
	Objects, Requests, Spans int
	// Evicted is how many traces of objects had to go, Cut how many spans of traces with too many, Overfull how many of
	// nodes that held too much.
	Evicted, Cut, Overfull uint64
}

// Stats returns the figures of this moment.
func (s *Store) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return Stats{Bytes: s.bytes, Objects: len(s.objects), Requests: len(s.requests), Spans: s.spans, Evicted: s.evicted,
		Cut: s.cut, Overfull: s.overfull}
}

// Save takes encoded records that a restart needs to bring the store to the same state. It is called in the order in
// which the store took the spans, and while nobody else can use the store: it must not wait.
type Save func(records [][]byte)

// Add takes a span. It keeps texts of the record, but not the record. If the span is kept, save gets it, unless it
// belongs to a request that no object links to yet, and the spans of requests that it is the first to link to.
func (s *Store) Add(r *of.Record, save Save) (why of.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var records [][]byte
	switch {
	case r.Object != nil:
		records, why = s.addObject(r)
	case r.Sender != "":
		return of.Foreign
	default:
		records, why = s.addRequest(r)
	}
	s.evict()
	if len(records) > 0 {
		save(records)
	}
	return why
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
	} else {
		s.active.MoveToFront(t.position)
	}
	t.learn(r)
	save = append(save, bytes.Clone(s.encoded))
	for _, l := range r.Links {
		if l.Relation == traces.RelationRequest && r.Sender == "" {
			save = append(save, s.link(t, link{l.Trace, l.Span})...)
		}
	}
	s.settle(t)
	return save, of.Kept
}

// learn fills what earlier spans did not say of the object. What one has said stays.
func (t *trace) learn(r *of.Record) {
	o := &t.object
	for _, field := range []struct {
		known *string
		said  string
	}{{&o.Group, r.Object.Group}, {&o.Resource, r.Object.Resource}, {&o.Kind, r.Object.Kind},
		{&o.Name, r.Object.Name}} {
		if *field.known == "" {
			*field.known = field.said
		}
	}
	if t.owner == nil && r.Owner != nil {
		owner := *r.Owner
		t.owner = &owner
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
	t.links = append(t.links, l)
	q := s.requests[l.trace]
	if q == nil {
		q = &trace{id: l.trace, refs: 1}
		s.requests[q.id] = q
		s.settle(q)
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
	s.settle(q)
	if fresh {
		s.requests[q.id] = q
		q.position = s.unlinked.PushFront(q)
	}
	if linked {
		return [][]byte{bytes.Clone(s.encoded)}, of.Kept
	}
	s.unlinked.MoveToFront(q.position)
	s.unlinkedBytes += q.bytes - before
	for s.unlinkedBytes > s.cfg.MaxBytes/unlinkedShare {
		s.forgetUnlinked()
	}
	return nil, of.Kept
}

// put adds a span to a trace that may have most bytes, and takes others from it until it does. The span is then in
// s.encoded, with its object. The caller settles.
func (s *Store) put(t *trace, r *of.Record, most int64) of.Reason {
	for _, span := range t.spans {
		if span.id == r.ID {
			return of.Duplicate
		}
	}
	whole, bare := r.EncodeBoth(s.encoded[:0])
	s.encoded = whole
	added := span{id: r.ID, parent: r.Parent, data: of.Bare(whole, bare)}
	if added.size() > most/4 {
		return of.TooLarge
	}
	for len(t.spans) > 0 && (len(t.spans) >= s.cfg.MaxSpans || t.bytes+added.size() > most-most/8) {
		s.cutMiddle(t)
	}
	if r.Sender != "" {
		added.from = s.partOf(t, r.Sender)
		added.from.spans++
	}
	t.spans = append(t.spans, added)
	s.charge(t, added.from, added.size())
	s.spans++
	t.start, t.end = min(t.start, r.Start), max(t.end, r.End)
	return of.Kept
}

// partOf returns the part of a trace that a node sent, which is active now.
func (s *Store) partOf(t *trace, name string) *part {
	for _, p := range t.parts {
		if p.node.name == name {
			p.node.parts.MoveToFront(p.position)
			return p
		}
	}
	n := s.nodes[name]
	if n == nil {
		n = &node{name: name, parts: list.New()}
		s.nodes[name] = n
	}
	p := &part{node: n, trace: t}
	p.position = n.parts.PushFront(p)
	t.parts = append(t.parts, p)
	s.charge(t, p, partOverhead)
	return p
}

// cutMiddle drops one span of a trace: that in the middle of those of the sender that has the most. A sender that tells
// too much of an object loses its own words.
func (s *Store) cutMiddle(t *trace) {
	var from *part
	most := t.ofControlPlane()
	for _, p := range t.parts {
		if p.spans > most {
			from, most = p, p.spans
		}
	}
	i, before := 0, most/2
	for ; t.spans[i].from != from || before > 0; i++ {
		if t.spans[i].from == from {
			before--
		}
	}
	s.charge(t, from, -t.spans[i].size())
	copy(t.spans[i:], t.spans[i+1:])
	t.spans[len(t.spans)-1] = span{}
	t.spans = t.spans[:len(t.spans)-1]
	if from != nil {
		from.spans--
	}
	t.dropped++
	s.cut++
	s.spans--
}

// ofControlPlane is how many spans the control plane sent.
func (t *trace) ofControlPlane() int {
	n := len(t.spans)
	for _, p := range t.parts {
		n -= p.spans
	}
	return n
}

// size is what a span takes: the allocator rounds its encoding up by up to an eighth.
func (s span) size() int64 { return spanOverhead + int64(len(s.data)+len(s.data)/8) + 8 }

// size is what a text takes.
func size(text string) int64 {
	if text == "" {
		return 0
	}
	return int64(len(text)+len(text)/8) + 8
}

// ownSize is what a trace takes beside its spans and parts.
func (t *trace) ownSize() int64 {
	n := traceOverhead + int64(cap(t.spans)-len(t.spans))*spanOverhead + int64(cap(t.links))*linkOverhead
	if t.owner != nil {
		n += int64(unsafe.Sizeof(*t.owner))
	}
	for _, o := range []*traces.Object{&t.object, t.owner} {
		if o != nil {
			n += size(o.Group) + size(o.Resource) + size(o.Kind) + size(o.Namespace) + size(o.Name) +
				size(string(o.UID))
		}
	}
	return n
}

// settle charges what a trace takes beside its spans and parts, as it is now.
func (s *Store) settle(t *trace) {
	s.charge(t, t.bearer, -t.own)
	t.bearer = nil
	if len(t.parts) > 0 && t.ofControlPlane() == 0 {
		t.bearer = t.parts[0]
	}
	t.own = t.ownSize()
	s.charge(t, t.bearer, t.own)
}

// charge charges a trace, and the node whose part of it is meant, if it is one's.
func (s *Store) charge(t *trace, p *part, bytes int64) {
	t.bytes += bytes
	s.bytes += bytes
	if p != nil {
		p.bytes += bytes
		p.node.bytes += bytes
		s.nodeBytes += bytes
	}
}

// evict brings the store within its bytes.
func (s *Store) evict() {
	for s.bytes > s.cfg.MaxBytes {
		if s.nodeBytes > s.cfg.MaxBytes/nodesShare {
			s.forgetPart(s.heaviest().parts.Back().Value.(*part))
			continue
		}
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

// heaviest returns the node that holds the most.
func (s *Store) heaviest() (most *node) {
	for _, n := range s.nodes {
		if most == nil || n.bytes > most.bytes || n.bytes == most.bytes && n.name < most.name {
			most = n
		}
	}
	return most
}

// forgetPart removes what a node sent of an object, and the object's trace if nothing else is in it.
func (s *Store) forgetPart(p *part) {
	t := p.trace
	s.overfull += uint64(p.spans)
	if p.spans == len(t.spans) {
		s.forget(t)
		return
	}
	kept := make([]span, 0, len(t.spans)-p.spans)
	for _, span := range t.spans {
		if span.from != p {
			kept = append(kept, span)
		}
	}
	t.spans = kept
	t.dropped += p.spans
	s.spans -= p.spans
	if t.bearer == p {
		t.bearer, t.own = nil, 0 // p.bytes has it
	}
	s.charge(t, p, -p.bytes)
	s.leave(p)
	t.parts = slices.DeleteFunc(t.parts, func(other *part) bool { return other == p })
	s.settle(t)
}

// leave takes a part out of its node's, and the node out of the store with its last one.
func (s *Store) leave(p *part) {
	p.node.parts.Remove(p.position)
	if p.node.parts.Len() == 0 {
		delete(s.nodes, p.node.name)
	}
}

// forget removes the trace of an object, and the requests that nobody else holds.
func (s *Store) forget(t *trace) {
	s.active.Remove(t.position)
	delete(s.objects, t.id)
	for _, p := range t.parts {
		s.charge(t, p, -p.bytes)
		s.leave(p)
	}
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
