package receiver

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apitraces "bonsai/api/traces"
	"bonsai/pkg/safetext"
	"bonsai/pkg/traces"
)

const podUID = "0a1b2c3d-0000-4000-8000-0123456789ab"

func text(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}
}

func attributes(pairs ...string) (out []*common.KeyValue) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, &common.KeyValue{Key: pairs[i], Value: text(pairs[i+1])})
	}
	return out
}

// podSpan is a span of a pod, with its object, its owner and a link.
func podSpan() *trace.Span {
	id, _ := traces.TraceOf(podUID)
	return &trace.Span{TraceId: id[:], SpanId: []byte("spanspan"), ParentSpanId: []byte("parentid"),
		Name: "kubelet.sandbox", StartTimeUnixNano: 1000, EndTimeUnixNano: 4000,
		Attributes: append(attributes("k8s.pod.name", "web", "bonsai.object.resource", "pods", "bonsai.object.kind", "Pod",
			"bonsai.object.namespace", "ns", "bonsai.object.name", "web", "bonsai.object.uid", podUID,
			"bonsai.owner.kind", "Job", "bonsai.owner.name", "job", "bonsai.other", "x"),
			&common.KeyValue{Key: "n", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: -3}}},
			&common.KeyValue{Key: "d", Value: &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: 0.5}}},
			&common.KeyValue{Key: "b", Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: true}}},
			&common.KeyValue{Key: "x", Value: &common.AnyValue{
				Value: &common.AnyValue_BytesValue{BytesValue: []byte{1, 0xff}}}},
			&common.KeyValue{Key: "l", Value: &common.AnyValue{Value: &common.AnyValue_ArrayValue{
				ArrayValue: &common.ArrayValue{Values: []*common.AnyValue{text("a"), text("b")}}}}},
			&common.KeyValue{Key: "m", Value: &common.AnyValue{Value: &common.AnyValue_KvlistValue{
				KvlistValue: &common.KeyValueList{Values: attributes("k", "v")}}}}),
		Links: []*trace.Span_Link{{TraceId: []byte("0123456789abcdef"), SpanId: []byte("linklink"),
			Attributes: attributes("bonsai.link.relation", "request")}},
		Status: &trace.Status{Code: trace.Status_STATUS_CODE_ERROR, Message: "no\x1b[31m room"}}
}

// of is a message of one program with these spans.
func of(spans ...*trace.Span) *collector.ExportTraceServiceRequest {
	return &collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: attributes("service.name", "kubelet", "host.name", "host",
			"k8s.node.name", "n1")},
		ScopeSpans: []*trace.ScopeSpans{{Spans: spans}}}}}
}

// read decodes what message is encoded as.
func read(t testing.TB, message proto.Message) (out []*traces.Record, dropped []traces.Reason) {
	t.Helper()
	b, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	if err := Decode(b, func(r *traces.Record) { out = append(out, clone(r)) },
		func(why traces.Reason) { dropped = append(dropped, why) }); err != nil {
		t.Fatal(err)
	}
	return out, dropped
}

// clone copies a record, which the decoder uses again.
func clone(r *traces.Record) *traces.Record {
	out := *r
	out.Attributes, out.Links = slices.Clone(r.Attributes), slices.Clone(r.Links)
	for _, o := range []**apitraces.Object{&out.Object, &out.Owner} {
		if *o != nil {
			object := **o
			*o = &object
		}
	}
	return &out
}

// TestDecode: everything of a span arrives, as text where it is shown.
func TestDecode(t *testing.T) {
	t.Parallel()
	got, dropped := read(t, of(podSpan()))
	id, _ := traces.TraceOf(podUID)
	want := []*traces.Record{{Trace: id, ID: traces.SpanID([]byte("spanspan")),
		Parent: traces.SpanID([]byte("parentid")),
		Name:   "kubelet.sandbox", Component: "kubelet", Instance: "n1", Start: 1000, End: 4000, Error: "no[31m room",
		Attributes: []traces.Attribute{{Key: "b", Value: "true"}, {Key: "bonsai.other", Value: "x"},
			{Key: "d", Value: "0.5"}, {Key: "l", Value: "[a b]"},
			{Key: "m", Value: "[k=v]"}, {Key: "n", Value: "-3"}, {Key: "x", Value: "01ff"}},
		Links: []traces.Link{{Trace: traces.TraceID([]byte("0123456789abcdef")),
			Span: traces.SpanID([]byte("linklink")), Relation: "request"}},
		Object: &apitraces.Object{Resource: "pods", Kind: "Pod", Namespace: "ns", Name: "web", UID: podUID},
		Owner:  &apitraces.Object{Kind: "Job", Name: "job"}}}
	if diff := cmp.Diff(want, got); diff != "" || dropped != nil {
		t.Error(diff, dropped)
	}
}

// TestOddSpans: what one can keep of spans that are not as they should be.
func TestOddSpans(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*trace.Span)
		dropped bool
		check   func(*traces.Record) bool
	}{
		"no trace":        {func(s *trace.Span) { s.TraceId = nil }, true, nil},
		"zero trace":      {func(s *trace.Span) { s.TraceId = make([]byte, 16) }, true, nil},
		"short trace":     {func(s *trace.Span) { s.TraceId = s.TraceId[:8] }, true, nil},
		"no span":         {func(s *trace.Span) { s.SpanId = nil }, true, nil},
		"no start":        {func(s *trace.Span) { s.StartTimeUnixNano = 0 }, true, nil},
		"start of no day": {func(s *trace.Span) { s.StartTimeUnixNano = math.MaxUint64 }, true, nil},
		"ends before it starts": {func(s *trace.Span) { s.EndTimeUnixNano = 1 }, false,
			func(r *traces.Record) bool { return r.End == r.Start }},
		"of another object": {func(s *trace.Span) { s.TraceId[0]++ }, false, func(r *traces.Record) bool {
			return r.Object == nil && strings.Contains(fmt.Sprint(r.Attributes), "{bonsai.object.name web}")
		}},
		"without failure": {func(s *trace.Span) { s.Status.Code = trace.Status_STATUS_CODE_OK }, false,
			func(r *traces.Record) bool { return r.Error == "" }},
		"failure without words": {func(s *trace.Span) { s.Status.Message = "" }, false,
			func(r *traces.Record) bool { return r.Error == "failed" }},
		"what the object says, too": {func(s *trace.Span) {
			s.Attributes = append(s.Attributes, attributes("k8s.pod.uid", podUID, "k8s.namespace.name", "ns",
				"k8s.node.name", "web", "k8s.namespace.uid", "web")...)
		}, false, func(r *traces.Record) bool {
			return !slices.ContainsFunc(r.Attributes, func(a traces.Attribute) bool {
				return a.Key == "k8s.pod.uid" || a.Key == "k8s.pod.name" || a.Key == "k8s.namespace.name"
			}) && strings.Contains(fmt.Sprint(r.Attributes), "{k8s.namespace.uid web} {k8s.node.name web}")
		}},
		"what the object does not say": {func(s *trace.Span) {
			s.Attributes = append(attributes("k8s.pod.name", "other", "k8s.namespace.name", "other"), s.Attributes...)
		}, false, func(r *traces.Record) bool {
			return strings.Contains(fmt.Sprint(r.Attributes), "{k8s.namespace.name other} {k8s.pod.name other}")
		}},
		"link to nothing": {func(s *trace.Span) { s.Links[0].TraceId = nil }, false,
			func(r *traces.Record) bool { return r.Links == nil }},
		"long name": {func(s *trace.Span) { s.Name = strings.Repeat("é", 1<<16) }, false,
			func(r *traces.Record) bool { return len(r.Name) < 300 }},
		"long value": {func(s *trace.Span) { s.Attributes = attributes("k", strings.Repeat("\u202e€", 1<<16)) }, false,
			func(r *traces.Record) bool { return len(r.Attributes[0].Value) < 1100 }},
		"long key": {func(s *trace.Span) { s.Attributes = attributes(strings.Repeat("k", 200), "v") }, false,
			func(r *traces.Record) bool { return r.Attributes == nil }},
		"one key twice": {func(s *trace.Span) { s.Attributes = attributes("k", "1", "k", "2") }, false,
			func(r *traces.Record) bool { return len(r.Attributes) == 1 && r.Attributes[0].Value == "1" }},
		"many attributes": {func(s *trace.Span) {
			for i := range 1000 {
				s.Attributes = append(s.Attributes, attributes(fmt.Sprint("k", i), "v")...)
			}
		}, false, func(r *traces.Record) bool {
			return len(r.Attributes) == MaxAttributes-1 && r.Object != nil // k8s.pod.name is the object's
		}},
		"many links": {func(s *trace.Span) {
			for range 1000 {
				s.Links = append(s.Links, s.Links[0])
			}
		}, false, func(r *traces.Record) bool { return len(r.Links) == MaxLinks }},
		"long list": {func(s *trace.Span) {
			list := &common.ArrayValue{}
			for range 1000 {
				list.Values = append(list.Values, text("a"))
			}
			s.Attributes = []*common.KeyValue{{Key: "l", Value: &common.AnyValue{
				Value: &common.AnyValue_ArrayValue{ArrayValue: list}}}}
		}, false, func(r *traces.Record) bool {
			return r.Attributes[0].Value == "["+strings.Repeat("a ", maxItems)+"…]"
		}},
		"deep list": {func(s *trace.Span) {
			v := text("a")
			for range 1000 {
				v = &common.AnyValue{Value: &common.AnyValue_ArrayValue{
					ArrayValue: &common.ArrayValue{Values: []*common.AnyValue{v}}}}
			}
			s.Attributes = []*common.KeyValue{{Key: "l", Value: v}}
		}, false, func(r *traces.Record) bool { return r.Attributes[0].Value == "[[[…]]]" }},
	} {
		s := podSpan()
		c.change(s)
		got, dropped := read(t, of(s))
		switch {
		case c.dropped:
			if len(got) > 0 || len(dropped) != 1 || dropped[0] != traces.Invalid {
				t.Errorf("%s: %+v, dropped %v", name, got, dropped)
			}
		case len(got) != 1 || !c.check(got[0]):
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestOneAfterTheOther: a span has nothing of the one before it, nor what was remembered of another text.
func TestOneAfterTheOther(t *testing.T) {
	t.Parallel()
	bare := &trace.Span{TraceId: []byte("0123456789abcdef"), SpanId: []byte("spanspan"), StartTimeUnixNano: 1}
	var named []*trace.Span
	for i := range 4 * maxRemembered {
		s := &trace.Span{TraceId: bare.TraceId, SpanId: bare.SpanId, StartTimeUnixNano: 1,
			Name: fmt.Sprint("n\x1b", i)}
		named = append(named, s, s)
	}
	got, _ := read(t, of(append([]*trace.Span{podSpan(), bare}, named...)...))
	if r := got[1]; r.Object != nil || r.Owner != nil || r.Name != "" || r.Error != "" || r.End != 1 ||
		len(r.Attributes)+len(r.Links) > 0 {
		t.Errorf("%+v", r)
	}
	for i, r := range got[2:] {
		if r.Name != fmt.Sprint("n", i/2) {
			t.Errorf("span %d is %q", i, r.Name)
		}
	}
}

// TestManySpans: of a message with too many spans, the first are taken and the others counted.
func TestManySpans(t *testing.T) {
	t.Parallel()
	spans := make([]*trace.Span, MaxSpans+7)
	for i := range spans {
		spans[i] = &trace.Span{}
	}
	_, dropped := read(t, of(spans...))
	if len(dropped) != len(spans) || dropped[MaxSpans-1] != traces.Invalid || dropped[MaxSpans] != traces.TooMany {
		t.Error(len(dropped), dropped[MaxSpans:])
	}
}

// FuzzBatch: no message breaks the decoder; it takes every message that protobuf's own decoder takes, with as many
// spans; and what it makes of it is bounded and can be shown.
func FuzzBatch(f *testing.F) {
	for _, m := range []proto.Message{of(), of(podSpan()), of(podSpan(), podSpan(), &trace.Span{})} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		err := Decode(b, func(r *traces.Record) {
			n++
			shown := []string{r.Name, r.Component, r.Instance, r.Error}
			for _, a := range r.Attributes {
				shown = append(shown, a.Key, a.Value)
			}
			for _, l := range r.Links {
				shown = append(shown, l.Relation)
			}
			for _, o := range []*apitraces.Object{r.Object, r.Owner} {
				if o != nil {
					shown = append(shown, o.Group, o.Resource, o.Kind, o.Namespace, o.Name, string(o.UID))
				}
			}
			for _, s := range shown {
				if len(s) > safetext.MaxError+3 || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
					t.Errorf("shown: %q", s)
				}
			}
			if len(r.Attributes) > MaxAttributes || len(r.Links) > MaxLinks || r.End < r.Start {
				t.Errorf("%+v", r)
			}
			again, err := traces.Decode(r.Encode(nil))
			if diff := cmp.Diff(r, again, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Error(err, diff)
			}
		}, func(traces.Reason) { n++ })
		m := &collector.ExportTraceServiceRequest{}
		if proto.Unmarshal(b, m) != nil {
			return
		}
		want := 0
		for _, rs := range m.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				want += len(ss.Spans)
			}
		}
		if err != nil || n != want {
			t.Errorf("%v; %d spans and not %d", err, n, want)
		}
	})
}

// TestRepeatedValue: of the values of one item the last one counts, as protobuf has it. Put together, a message that is
// one item would be copied for each of its values, which takes minutes.
func TestRepeatedValue(t *testing.T) {
	t.Parallel()
	item := func(key, value string) []byte {
		b, err := proto.Marshal(&common.KeyValue{Key: key, Value: text(value)})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	field := func(number protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b)
	}
	values := append(item("k", "a"), bytes.Repeat(item("", "b"), 1<<10)...) // one map entry, key and many values
	span := podSpan()
	span.Attributes = nil
	encoded, err := proto.Marshal(span)
	if err != nil {
		t.Fatal(err)
	}
	list := field(6, field(1, values)) // kvlist_value, values
	attribute := append(field(1, []byte("m")), field(2, list)...)
	message := field(1, field(2, field(2, append(encoded, field(9, attribute)...))))
	var got []traces.Attribute
	if err := Decode(message, func(r *traces.Record) { got = r.Attributes }, func(traces.Reason) {}); err != nil {
		t.Fatal(err)
	}
	if want := []traces.Attribute{{Key: "m", Value: "[k=b]"}}; !slices.Equal(got, want) {
		t.Errorf("%.200v, want %v", got, want)
	}
}
