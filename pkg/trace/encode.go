package trace

import (
	"encoding/binary"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	oteltrace "go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// Spans are encoded here and not by OpenTelemetry's SDK and exporter. These make three structures of each span, and
// protobuf walks the last one by reflection: at all spans, that was much of what tracing cost the control plane. The
// fields: https://github.com/open-telemetry/opentelemetry-proto, trace/v1/trace.proto and common/v1/common.proto.

// The kinds of spans.
const (
	kindInternal = 1
	kindServer   = 2
)

// The fields of a Span.
const (
	spanTrace      = 1
	spanID         = 2
	spanParent     = 4
	spanName       = 5
	spanKind       = 6
	spanStart      = 7
	spanEnd        = 8
	spanAttributes = 9
	spanLinks      = 13
	spanStatus     = 15
	spanFlags      = 16
)

// flags are those of a recorded span: W3C's "sampled".
const flags = 1

// header is what every span has.
type header struct {
	trace      oteltrace.TraceID
	id, parent oteltrace.SpanID // parent zero: it has none
	name       string
	kind       uint64
	start, end time.Time
}

func (h *header) append(b []byte) []byte {
	start := max(0, h.start.UnixNano())
	end := max(start, h.end.UnixNano()) // a clock was put back, or creationTimestamp is of another machine
	b = appendBytes(b, spanTrace, h.trace[:])
	b = appendBytes(b, spanID, h.id[:])
	if h.parent.IsValid() {
		b = appendBytes(b, spanParent, h.parent[:])
	}
	b = appendText(b, spanName, printable(h.name))
	b = protowire.AppendVarint(protowire.AppendTag(b, spanKind, protowire.VarintType), h.kind)
	b = protowire.AppendFixed64(protowire.AppendTag(b, spanStart, protowire.Fixed64Type), uint64(start))
	b = protowire.AppendFixed64(protowire.AppendTag(b, spanEnd, protowire.Fixed64Type), uint64(end))
	return protowire.AppendFixed32(protowire.AppendTag(b, spanFlags, protowire.Fixed32Type), flags)
}

// appendAttributes appends the first of some attributes of a span.
func appendAttributes(b []byte, attributes []attribute.KeyValue, most int) []byte {
	for _, a := range attributes[:max(0, min(len(attributes), most))] {
		b = appendAttribute(b, spanAttributes, a)
	}
	return b
}

func appendLinks(b []byte, links []Link) []byte {
	for _, l := range links[:min(len(links), maxLinks)] {
		b = protowire.AppendTag(b, spanLinks, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(2+len(l.Trace)+2+len(l.Span)+sizeOfWord(string(relationKey), l.Relation)))
		b = appendBytes(b, 1, l.Trace[:])
		b = appendBytes(b, 2, l.Span[:])
		b = appendWord(b, 4, string(relationKey), l.Relation)
	}
	return b
}

// appendFailure appends the status of a step that failed.
func appendFailure(b []byte, why string) []byte {
	const failed = 2 // STATUS_CODE_ERROR
	why = printable(why)
	b = protowire.AppendTag(b, spanStatus, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(1+protowire.SizeBytes(len(why))+2))
	b = appendText(b, 2, why)
	return protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), failed)
}

// appendAttribute appends a KeyValue as a field. A list is written as its text: no span of ours has one.
func appendAttribute(b []byte, field protowire.Number, a attribute.KeyValue) []byte {
	const value, isBool, isInt, isDouble = 2, 2, 3, 4
	var number [1 + binary.MaxVarintLen64]byte
	n := number[:0]
	switch a.Value.Type() {
	case attribute.STRING:
		return appendWord(b, field, string(a.Key), a.Value.AsString())
	case attribute.BOOL:
		n = protowire.AppendVarint(protowire.AppendTag(n, isBool, protowire.VarintType),
			protowire.EncodeBool(a.Value.AsBool()))
	case attribute.INT64:
		n = protowire.AppendVarint(protowire.AppendTag(n, isInt, protowire.VarintType), uint64(a.Value.AsInt64()))
	case attribute.FLOAT64:
		n = protowire.AppendFixed64(protowire.AppendTag(n, isDouble, protowire.Fixed64Type),
			math.Float64bits(a.Value.AsFloat64()))
	default:
		return appendWord(b, field, string(a.Key), a.Value.Emit())
	}
	key := printable(string(a.Key))
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(1+protowire.SizeBytes(len(key))+1+protowire.SizeBytes(len(n))))
	b = appendText(b, 1, key)
	return appendBytes(b, value, n)
}

// appendWord appends a KeyValue with a text as a field.
func appendWord(b []byte, field protowire.Number, key, value string) []byte {
	key, value = printable(key), printable(value)
	any := 1 + protowire.SizeBytes(len(value))
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(1+protowire.SizeBytes(len(key))+1+protowire.SizeBytes(any)))
	b = appendText(b, 1, key)
	b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.BytesType), uint64(any))
	return appendText(b, 1, value)
}

// sizeOfWord is how many bytes appendWord appends.
func sizeOfWord(key, value string) int {
	any := 1 + protowire.SizeBytes(len(value))
	return 1 + protowire.SizeBytes(1+protowire.SizeBytes(len(key))+1+protowire.SizeBytes(any))
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

func appendBytes(b []byte, field protowire.Number, bytes []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), bytes)
}

// printable is a text cut to what a span takes, and UTF-8, as protobuf wants it.
func printable(text string) string {
	if len(text) > maxValue {
		text = text[:maxValue]
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "")
	}
	return text
}

// Program is who makes spans: service.name, service.version and service.instance.id, the last one the node or the host
// where it runs.
type Program struct{ Name, Version, Instance string }

// Resource returns the encoding of the ResourceSpans of a program up to its spans: its Resource.
func (p Program) Resource() []byte {
	var r []byte
	for _, word := range [][2]string{{"service.name", p.Name}, {"service.version", p.Version},
		{"service.instance.id", p.Instance}} {
		r = appendWord(r, 1, word[0], word[1])
	}
	return appendBytes(nil, 1, r)
}
