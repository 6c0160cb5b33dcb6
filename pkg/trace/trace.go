// Package trace tells the story of an object as spans of OpenTelemetry, from the request that made it to the running
// container.
//
// # Traces and their ids
//
// The trace of an object is its UID: a UUID has 16 bytes, as a W3C trace-id has (https://www.w3.org/TR/trace-context/).
// So every component that has the object knows its trace, and nothing is written on objects for it.
//
// Each span of an object is below one root span, whose id is the first 8 bytes of the UID. So every component knows
// that id, too, and none needs to have seen the root. It is sent once, by the component that sees the object reach its
// aim: for a pod by its kubelet, from creationTimestamp until the pod is Ready. Until then a reader finds children of a
// parent that it does not have.
//
// A request has a trace of its own, which its client chooses in the header "traceparent" (package traceparent). The
// API server's span "apiserver.create" of an object links to the request, and to the trace of the object's owner. Links
// say what they point at in the attribute bonsai.link.relation.
//
// # What is recorded
//
// A part of all traces, which the sampling rate of the configuration sets. For an object its UID alone decides, so that
// all components decide alike and a trace is whole. For a request the decision of a client that is known counts, if it
// sends one. Of a request that nobody asked for, steps shorter than a millisecond are left out, unless they fail.
//
// # What spans say
//
// Attributes are those of OpenTelemetry's semantic conventions, and bonsai.object.* and bonsai.owner.*, which name the
// object and its controller. They say no more of an object than its name, its place and what was done when: whoever may
// read an object's trace need not be allowed to read the object, nor the audit log. So no span has a body, an
// environment variable, a command, a query, a user or an address.
//
// # Cost
//
// A nil *Tracer makes no spans and costs a comparison. Where attributes are made for a span, Records is asked first. A
// span is encoded as it ends (encode.go), once, and only its bytes wait to be sent.
package trace

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	oteltrace "go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/traces"
)

// Scope names what makes the spans, as OpenTelemetry wants it named.
const Scope = "bonsai"

// Bounds of one span: attributes, bytes of a value, links. What is beyond them is cut off.
const (
	maxAttributes = 48
	maxValue      = 1024
	maxLinks      = 8
)

// Config describes a Tracer.
type Config struct {
	// Component is the first part of the spans' names.
	Component string
	// PerMillion is how many of a million traces are recorded.
	PerMillion int32
	// Outlet receives the spans as they end.
	Outlet Outlet
}

// Outlet takes spans, each an encoded Span of OpenTelemetry's protocol. Its bytes are valid until Take returns, which
// must not block.
type Outlet interface{ Take(span []byte) }

// Tracer makes the spans of one component. Its methods are safe for concurrent use, and for a nil *Tracer, which makes
// none.
type Tracer struct {
	outlet    Outlet
	component string
	// below is what the random part of a trace id is compared with: 2^56 records all.
	below uint64
	// buffers has *[]byte, in which spans are encoded.
	buffers sync.Pool
}

// New returns a Tracer.
func New(c Config) *Tracer {
	hi, lo := bits.Mul64(uint64(max(c.PerMillion, 0)), 1<<randomBits)
	below, _ := bits.Div64(hi, lo, 1_000_000)
	return &Tracer{outlet: c.Outlet, component: c.Component, below: below,
		buffers: sync.Pool{New: func() any { return new([]byte) }}}
}

// randomBits is how many bits at the end of a trace id are random, in W3C's Trace Context as in a UUID of version 4.
// The 64 bits that OpenTelemetry's TraceIDRatioBased compares are not: the first of them are the same in all UUIDs, so
// that it takes no object at rates up to a half, and all of them from three quarters on.
const randomBits = 56

// takes reports whether the sampling rate takes a trace.
func (t *Tracer) takes(id oteltrace.TraceID) bool {
	return binary.BigEndian.Uint64(id[8:])&(1<<randomBits-1) < t.below
}

// Of returns the trace id of the object with a UID, and false if the UID is no UUID. The UID of a static pod, 32 hex
// digits, is one without its dashes.
func Of(uid types.UID) (id oteltrace.TraceID, ok bool) {
	n := 0
	for i := range len(uid) {
		c := uid[i]
		switch {
		case c == '-':
			continue
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return oteltrace.TraceID{}, false
		}
		if n == 2*len(id) {
			return oteltrace.TraceID{}, false
		}
		id[n/2] = id[n/2]<<4 | c
		n++
	}
	return id, n == 2*len(id) && id.IsValid()
}

// Root returns the id of the root span of an object's trace.
func Root(id oteltrace.TraceID) (root oteltrace.SpanID) {
	copy(root[:], id[:])
	if !root.IsValid() { // is no id, and no UUID of any version has it
		root[len(root)-1] = 1
	}
	return root
}

// Records reports whether the spans of the object with a UID are recorded. Whoever makes attributes for Step asks
// first.
func (t *Tracer) Records(uid types.UID) bool {
	if t == nil || t.below == 0 {
		return false
	}
	id, ok := Of(uid)
	return ok && t.takes(id)
}

// Component is the name of the component whose spans t makes.
func (t *Tracer) Component() string { return t.component }

// Step is a timed step of an object.
type Step struct {
	// Name is "<component>.<step>": kubelet.sandbox. It has no names of objects.
	Name       string
	Start, End time.Time
	// Attributes are those that the object does not have already.
	Attributes []attribute.KeyValue
	// Links point at other traces.
	Links []Link
	// Err is why the step failed, nil if it did not. Its text is in the span.
	Err error
	// Parent is the span that the step is a part of; zero: the root.
	Parent oteltrace.SpanID
	// ID is the span's own; zero: a random one.
	ID oteltrace.SpanID
}

// Step records a step of an object, if the object's spans are recorded, and returns the id of its span.
func (t *Tracer) Step(o Object, s Step) oteltrace.SpanID {
	if !t.Records(o.UID) {
		return oteltrace.SpanID{}
	}
	id, _ := Of(o.UID)
	if !s.Parent.IsValid() {
		s.Parent = Root(id)
	}
	if !s.ID.IsValid() {
		s.ID = NewID()
	}
	t.record(id, &o, &s)
	return s.ID
}

// Reached records the root span of an object: what it has been on the way to since its creation, it has reached at end.
// The span is named after the object: "pod".
func (t *Tracer) Reached(o Object, end time.Time, more ...attribute.KeyValue) {
	if !t.Records(o.UID) {
		return
	}
	id, _ := Of(o.UID)
	t.record(id, &o, &Step{Name: strings.ToLower(o.Kind), Start: o.Created, End: end, Attributes: more, ID: Root(id)})
}

func (t *Tracer) record(id oteltrace.TraceID, o *Object, s *Step) {
	h := header{trace: id, id: s.ID, parent: s.Parent, name: s.Name, kind: kindInternal, start: s.Start, end: s.End}
	t.send(func(b []byte) []byte {
		b = h.append(b)
		b, n := o.append(b, s.Attributes)
		b = appendAttributes(b, s.Attributes, maxAttributes-n)
		b = appendLinks(b, s.Links)
		if s.Err != nil {
			b = appendFailure(b, s.Err.Error())
		}
		return b
	})
}

// send gives the outlet what encode appends.
func (t *Tracer) send(encode func([]byte) []byte) {
	buffer := t.buffers.Get().(*[]byte)
	*buffer = encode((*buffer)[:0])
	t.outlet.Take(*buffer)
	t.buffers.Put(buffer)
}

// Link points at another trace, or at a span of it. Its relation is an attribute of the link.
type Link struct {
	Relation string
	Trace    oteltrace.TraceID
	Span     oteltrace.SpanID
}

// ToOwner is the link from an object to the trace of its owner, none if the UID is no trace. span is a span of the
// owner's trace; zero: its root.
func ToOwner(owner types.UID, span oteltrace.SpanID) []Link {
	id, ok := Of(owner)
	if !ok {
		return nil
	}
	if !span.IsValid() {
		span = Root(id)
	}
	return []Link{{traces.RelationOwner, id, span}}
}

// NewID returns an id for a span that others are to name before it is recorded.
func NewID() (id oteltrace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// newTrace returns an id for a trace.
func newTrace() (id oteltrace.TraceID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}
