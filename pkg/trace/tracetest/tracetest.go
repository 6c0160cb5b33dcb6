// Package tracetest collects the spans of a component in tests.
package tracetest

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	sdktest "go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"bonsai/pkg/trace"
)

// Spans are the spans that have ended, in the order of their ends, as OpenTelemetry's SDK shows them. It is safe for
// concurrent use.
type Spans struct {
	mu    sync.Mutex
	ended []sdktrace.ReadOnlySpan
}

var _ trace.Outlet = (*Spans)(nil)

// New returns a Tracer of the component that records every trace, and its spans.
func New(component string) (*trace.Tracer, *Spans) {
	s := &Spans{}
	return trace.New(trace.Config{Component: component, PerMillion: 1_000_000, Outlet: s}), s
}

// Take implements trace.Outlet.
func (s *Spans) Take(span []byte) {
	m := &tracev1.Span{}
	if err := proto.Unmarshal(span, m); err != nil {
		panic(err) // a span is not encoded as one
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, decoded(m))
}

// decoded is a span as OpenTelemetry's SDK shows it.
func decoded(m *tracev1.Span) sdktrace.ReadOnlySpan {
	of := func(trace, span []byte) oteltrace.SpanContext {
		c := oteltrace.SpanContextConfig{TraceFlags: oteltrace.TraceFlags(m.Flags)}
		copy(c.TraceID[:], trace)
		copy(c.SpanID[:], span)
		return oteltrace.NewSpanContext(c)
	}
	stub := sdktest.SpanStub{Name: m.Name, SpanContext: of(m.TraceId, m.SpanId), Parent: of(m.TraceId, m.ParentSpanId),
		SpanKind: oteltrace.SpanKind(m.Kind), StartTime: time.Unix(0, int64(m.StartTimeUnixNano)),
		EndTime: time.Unix(0, int64(m.EndTimeUnixNano)), Attributes: values(m.Attributes)}
	for _, l := range m.Links {
		stub.Links = append(stub.Links, sdktrace.Link{SpanContext: of(l.TraceId, l.SpanId),
			Attributes: values(l.Attributes)})
	}
	if m.Status != nil {
		stub.Status.Description = m.Status.Message
		if m.Status.Code == tracev1.Status_STATUS_CODE_ERROR {
			stub.Status.Code = codes.Error
		}
	}
	return stub.Snapshot()
}

func values(list []*commonv1.KeyValue) (out []attribute.KeyValue) {
	for _, a := range list {
		key := attribute.Key(a.Key)
		switch v := a.Value.Value.(type) {
		case *commonv1.AnyValue_StringValue:
			out = append(out, key.String(v.StringValue))
		case *commonv1.AnyValue_BoolValue:
			out = append(out, key.Bool(v.BoolValue))
		case *commonv1.AnyValue_IntValue:
			out = append(out, key.Int64(v.IntValue))
		case *commonv1.AnyValue_DoubleValue:
			out = append(out, key.Float64(v.DoubleValue))
		}
	}
	return out
}

// All returns the spans that have ended.
func (s *Spans) All() []sdktrace.ReadOnlySpan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ended)
}

// Named returns the ended spans of a name.
func (s *Spans) Named(name string) []sdktrace.ReadOnlySpan {
	return slices.DeleteFunc(s.All(), func(span sdktrace.ReadOnlySpan) bool { return span.Name() != name })
}

// Names returns the names of the ended spans.
func (s *Spans) Names() (names []string) {
	for _, span := range s.All() {
		names = append(names, span.Name())
	}
	return names
}

// Attribute returns the value of a span's attribute as text, "" if it has none.
func Attribute(span sdktrace.ReadOnlySpan, key string) string {
	for _, a := range span.Attributes() {
		if string(a.Key) == key {
			return a.Value.Emit()
		}
	}
	return ""
}
