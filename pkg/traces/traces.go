// Package traces is the store of a cluster's traces: spans come in by OTLP, are kept within a bound of bytes, and are
// answered as the API group traces.bonsai.io.
//
// Its parts meet here: package receiver decodes what components send into Records, package store keeps the newest of
// them and knows which belong together, package persist keeps them over restarts, and package serve answers for them.
package traces

import (
	"encoding/hex"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/traces"
)

// MediaType is that of messages in OTLP over HTTP.
const MediaType = "application/x-protobuf"

// TraceID and SpanID are those of W3C's trace context. A zero SpanID is none.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// String returns the ID as 32 hex digits.
func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

// String returns the ID as 16 hex digits, or "" for none.
func (s SpanID) String() string {
	if s == (SpanID{}) {
		return ""
	}
	return hex.EncodeToString(s[:])
}

// TraceOf returns the trace of the object with this UID, whose bytes it has. It reports whether the UID is a UUID, or
// one without dashes, as static pods have: objects with other UIDs have no traces.
func TraceOf(uid types.UID) (id TraceID, ok bool) {
	if len(uid) > 36 {
		return id, false
	}
	text := strings.ReplaceAll(string(uid), "-", "")
	if len(text) != 32 {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(text))
	return id, err == nil && text == strings.ToLower(text)
}

// Record is one span as it is kept. Its texts are bounded and have no control characters: the receiver saw to that.
type Record struct {
	Trace      TraceID
	ID, Parent SpanID
	// Sender is the node whose program sent the span, "" for a program of the control plane. Readers do not see it: the
	// store counts by it.
	Sender string
	// Name, Component and Instance are those of the API's Span.
	Name, Component, Instance string
	// Start and End are nanoseconds since 1970. End is not before Start.
	Start, End int64
	// Attributes are sorted by key. They do not repeat what Object and Owner say.
	Attributes []Attribute
	// Error is why the step failed, "" if it did not.
	Error string
	Links []Link
	// Object is what the trace is about: its UID is Trace. Nil for the span of a request or of a round, whose trace has
	// an ID of its own. Owner is the object's controller, nil if the span does not say.
	Object, Owner *traces.Object
}

// Attribute is one attribute of a span, its value as text.
type Attribute struct{ Key, Value string }

// Link points at another trace; a zero Span means all of it.
type Link struct {
	Trace    TraceID
	Span     SpanID
	Relation string
}

// Span returns the record as the API shows it.
func (r *Record) Span() traces.Span {
	s := traces.Span{TraceID: r.Trace.String(), ID: r.ID.String(), Parent: r.Parent.String(), Name: r.Name,
		Component: r.Component, Instance: r.Instance, Start: time.Unix(0, r.Start).UTC(),
		Duration: time.Duration(r.End - r.Start), Error: r.Error}
	if len(r.Attributes) > 0 {
		s.Attributes = make(map[string]string, len(r.Attributes))
		for _, a := range r.Attributes {
			s.Attributes[a.Key] = a.Value
		}
	}
	for _, l := range r.Links {
		s.Links = append(s.Links, traces.Link{TraceID: l.Trace.String(), SpanID: l.Span.String(), Relation: l.Relation})
	}
	return s
}

// Reason is why a span was not kept, as the label of a metric.
type Reason string

// The reasons. Kept is none.
const (
	Kept Reason = ""
	// Duplicate: the span is kept already. Senders repeat what was not acknowledged in time.
	Duplicate Reason = "duplicate"
	// Contradiction: other spans of the trace say that the object is in another namespace. Who may read a trace depends
	// on that, so that the first word counts.
	Contradiction Reason = "contradiction"
	// TooLarge: the span alone would take a large part of what one trace may have.
	TooLarge Reason = "too_large"
	// TooMany: the message had more spans than one may have.
	TooMany Reason = "too_many"
	// Invalid: the span has no usable IDs or times.
	Invalid Reason = "invalid"
	// Foreign: a program of a node calls itself a component of the control plane, which sends by another way.
	Foreign Reason = "foreign"
)

// Query selects traces for a list.
type Query struct {
	// Cluster selects the objects that are in no namespace, and else those in Namespace, or in any if that is "".
	Cluster   bool
	Namespace string
	// Kind, Resource, Name and UID are those of the object; "" is any.
	Kind, Resource, Name string
	UID                  types.UID
	// Hidden are resources whose objects' traces are left out. The zero one is that of objects whose resource no span
	// said.
	Hidden map[schema.GroupResource]bool
	// Since leaves out traces whose last span ended before, in nanoseconds since 1970.
	Since int64
	// Slowest, if not 0, selects that many of the longest, the longest first. There is no next page then.
	Slowest int
	// Limit is how many there may be on a page. After is where the page before ended, the zero Position for the first.
	Limit int
	After Position
}

// Position is a trace's place in the order of lists.
type Position struct {
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
}

// Less reports whether p is before q.
func (p Position) Less(q Position) bool {
	if p.Namespace != q.Namespace {
		return p.Namespace < q.Namespace
	}
	if p.Name != q.Name {
		return p.Name < q.Name
	}
	return p.UID < q.UID
}

// Page is a part of a list: traces without their spans. Remaining is how many come after it.
type Page struct {
	Traces    []traces.Trace
	Remaining int
}
