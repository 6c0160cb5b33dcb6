package trace

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"bonsai/api/traces"
	"bonsai/pkg/trace/traceparent"
)

// Span is a span that has not ended. A nil *Span is one that is not recorded. It belongs to one goroutine; others may
// have it in their context.
type Span struct {
	tracer     *Tracer
	header     header
	attributes []attribute.KeyValue
	failure    string // why the step failed, "" if it did not
	// asked tells that a known client asked for the request to be recorded; step, that the span is a part of it.
	asked, step bool
	ended       atomic.Bool
}

// Set adds attributes, or replaces those with the same key. Whoever makes them first asks whether s is nil.
func (s *Span) Set(attributes ...attribute.KeyValue) {
	if s == nil {
		return
	}
	s.attributes = slices.Grow(s.attributes, len(attributes))
	for _, a := range attributes {
		i := slices.IndexFunc(s.attributes, func(known attribute.KeyValue) bool { return known.Key == a.Key })
		switch {
		case i >= 0:
			s.attributes[i] = a
		case len(s.attributes) < maxAttributes:
			s.attributes = append(s.attributes, a)
		}
	}
}

// Rename gives the span another name.
func (s *Span) Rename(name string) {
	if s != nil {
		s.header.name = name
	}
}

// Fail notes why the step failed; nil changes nothing.
func (s *Span) Fail(err error) {
	if s != nil && err != nil {
		s.failure = err.Error()
	}
}

// End ends the span. Later calls do nothing.
func (s *Span) End() {
	if s != nil {
		s.endAt(time.Now())
	}
}

// shortStep is how long a step of a request takes at least to be recorded where nobody asked for the request: most are
// checks of rights that take microseconds.
const shortStep = time.Millisecond

func (s *Span) endAt(end time.Time) {
	if s.ended.Swap(true) || s.step && !s.asked && s.failure == "" && end.Sub(s.header.start) < shortStep {
		return
	}
	s.header.end = end
	s.tracer.send(func(b []byte) []byte {
		b = s.header.append(b)
		b = appendAttributes(b, s.attributes, maxAttributes)
		if s.failure != "" {
			b = appendFailure(b, s.failure)
		}
		return b
	})
}

type spanKey struct{}

// spanOf returns the span around what ctx is for, nil if there is none, it is not recorded, or it is over.
func spanOf(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	if s == nil || s.ended.Load() {
		return nil
	}
	return s
}

// Request begins the span of a request that came at begun with the header traceparent. The returned context has the
// span, so that Start adds to it; without one it is ctx.
//
// The request belongs to the client's trace, if it names one. Then a client that is known decides whether the request
// is recorded, by the flag of the header. For all others the sampling rate decides: who may not use the server shall
// not fill the store. Of their requests, steps that are short and did not fail are left out.
func (t *Tracer) Request(ctx context.Context, name, header string, known bool, begun time.Time,
	attributes ...attribute.KeyValue) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	s := &Span{tracer: t}
	switch client, named := traceparent.Parse(header); {
	case named && known && !client.Sampled, named && !known && !t.takes(client.TraceID):
		return ctx, nil
	case named:
		s.header.trace, s.header.parent, s.asked = client.TraceID, client.Parent, known
	default:
		if s.header.trace = newTrace(); !t.takes(s.header.trace) {
			return ctx, nil
		}
	}
	s.header.id, s.header.name, s.header.kind, s.header.start = NewID(), name, kindServer, begun
	s.Set(attributes...)
	return context.WithValue(ctx, spanKey{}, s), s
}

// under begins a step of what another span is for.
func (s *Span) under(name string, begun time.Time) *Span {
	return &Span{tracer: s.tracer, asked: s.asked, step: true, header: header{trace: s.header.trace, id: NewID(),
		parent: s.header.id, name: name, kind: kindInternal, start: begun}}
}

// Start begins a step of the request of ctx. If that is not recorded, it returns ctx and nil, and allocates nothing.
func Start(ctx context.Context, name string) (context.Context, *Span) {
	around := spanOf(ctx)
	if around == nil {
		return ctx, nil
	}
	s := around.under(name, time.Now())
	return context.WithValue(ctx, spanKey{}, s), s
}

// Past records a step of the request of ctx that is over. Whoever makes attributes for it asks Recording first.
func Past(ctx context.Context, name string, start, end time.Time, err error, attributes ...attribute.KeyValue) {
	around := spanOf(ctx)
	if around == nil {
		return
	}
	s := around.under(name, start)
	s.Set(attributes...)
	s.Fail(err)
	s.endAt(end)
}

// Recording reports whether the request of ctx is recorded.
func Recording(ctx context.Context) bool { return spanOf(ctx) != nil }

// ToRequest is the link from an object to the request of ctx that makes it, none if that is not recorded.
func ToRequest(ctx context.Context) []Link {
	s := spanOf(ctx)
	if s == nil {
		return nil
	}
	return []Link{{traces.RelationRequest, s.header.trace, s.header.id}}
}

// Outgoing is the header traceparent for a request that is made for the request of ctx, "" if that is not recorded.
func Outgoing(ctx context.Context) string {
	s := spanOf(ctx)
	if s == nil {
		return ""
	}
	return traceparent.Context{TraceID: s.header.trace, Parent: s.header.id, Sampled: true}.String()
}
