// Package tracetest collects the spans of a component in tests.
package tracetest

import (
	"context"
	"slices"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"bonsai/pkg/trace"
)

// Spans are the spans that have ended, in the order of their ends. It is safe for concurrent use.
type Spans struct {
	mu    sync.Mutex
	ended []sdktrace.ReadOnlySpan
}

var _ sdktrace.SpanProcessor = (*Spans)(nil)

// New returns a Tracer of the component that records every trace, and its spans.
func New(component string) (*trace.Tracer, *Spans) {
	s := &Spans{}
	return trace.New(trace.Config{Component: component, PerMillion: 1_000_000, Processor: s}), s
}

// OnStart implements sdktrace.SpanProcessor.
func (*Spans) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (s *Spans) OnEnd(span sdktrace.ReadOnlySpan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, span)
}

// Shutdown implements sdktrace.SpanProcessor.
func (*Spans) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (*Spans) ForceFlush(context.Context) error { return nil }

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
