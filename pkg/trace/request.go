package trace

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"bonsai/api/traces"
	"bonsai/pkg/trace/traceparent"
)

// Span is a span that has not ended. A nil *Span is one that is not recorded. It belongs to one goroutine.
type Span struct{ span oteltrace.Span }

// Set adds attributes. Whoever makes them first asks whether s is nil.
func (s *Span) Set(attributes ...attribute.KeyValue) {
	if s != nil {
		s.span.SetAttributes(attributes...)
	}
}

// Rename gives the span another name.
func (s *Span) Rename(name string) {
	if s != nil {
		s.span.SetName(name)
	}
}

// Fail notes why the step failed; nil changes nothing.
func (s *Span) Fail(err error) {
	if s != nil && err != nil {
		s.span.SetStatus(codes.Error, printable(err))
	}
}

// End ends the span.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}

// Request begins the span of a request that came at begun with the header traceparent. The returned context has the
// span, so that Start adds to it; without one it is ctx.
//
// The request belongs to the client's trace, if it names one. Then a client that is known decides whether the request
// is recorded, by the flag of the header. For all others the sampling rate decides: who may not use the server shall
// not fill the store.
func (t *Tracer) Request(ctx context.Context, name, header string, known bool, begun time.Time,
	attributes ...attribute.KeyValue) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	var under context.Context
	client, named := traceparent.Parse(header)
	switch id := oteltrace.TraceID(client.TraceID); {
	case named && known && !client.Sampled, named && !known && !t.takes(id):
		return ctx, nil
	case named:
		under = oteltrace.ContextWithRemoteSpanContext(wanted{}, remote(id, oteltrace.SpanID(client.Parent)))
	default:
		id, _ := ids{}.NewIDs(wanted{})
		if !t.takes(id) {
			return ctx, nil
		}
		under = wanted{trace: id}
	}
	_, span := t.tracer.Start(under, name, oteltrace.WithSpanKind(oteltrace.SpanKindServer),
		oteltrace.WithTimestamp(begun), oteltrace.WithAttributes(attributes...))
	return oteltrace.ContextWithSpan(ctx, span), &Span{span}
}

// Start begins a step of the request of ctx. If that is not recorded, it returns ctx and nil, and allocates nothing.
func Start(ctx context.Context, name string) (context.Context, *Span) {
	around := oteltrace.SpanFromContext(ctx)
	if !around.IsRecording() {
		return ctx, nil
	}
	ctx, span := around.TracerProvider().Tracer(scope).Start(ctx, name)
	return ctx, &Span{span}
}

// Past records a step of the request of ctx that is over. Whoever makes attributes for it asks Recording first.
func Past(ctx context.Context, name string, start, end time.Time, err error, attributes ...attribute.KeyValue) {
	around := oteltrace.SpanFromContext(ctx)
	if !around.IsRecording() {
		return
	}
	_, span := around.TracerProvider().Tracer(scope).Start(ctx, name, oteltrace.WithTimestamp(start),
		oteltrace.WithAttributes(attributes...))
	(&Span{span}).Fail(err)
	span.End(oteltrace.WithTimestamp(end))
}

// Recording reports whether the request of ctx is recorded.
func Recording(ctx context.Context) bool { return oteltrace.SpanFromContext(ctx).IsRecording() }

// ToRequest is the link from an object to the request of ctx that makes it, none if that is not recorded.
func ToRequest(ctx context.Context) []oteltrace.Link {
	span := oteltrace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return nil
	}
	c := span.SpanContext()
	return []oteltrace.Link{link(traces.RelationRequest, c.TraceID(), c.SpanID())}
}

// Outgoing is the header traceparent for a request that is made for the request of ctx, "" if that is not recorded.
func Outgoing(ctx context.Context) string {
	span := oteltrace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return ""
	}
	c := span.SpanContext()
	return traceparent.Context{TraceID: c.TraceID(), Parent: c.SpanID(), Sampled: true}.String()
}
