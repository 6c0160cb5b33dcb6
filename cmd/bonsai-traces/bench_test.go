package main

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	otlp "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/traces"
	"bonsai/pkg/traces/receiver"
)

// BenchmarkSpans is the cost of a span from its message to the store and the file: of a pod, with all that components
// say of one, and of a request.
func BenchmarkSpans(b *testing.B) {
	const batch = 512
	for name, span := range map[string]func(n uint64) *trace.Span{"pod": podSpan, "request": requestSpan} {
		b.Run(name, func(b *testing.B) {
			p := newParts(&options{socket: b.TempDir() + "/s", dataDir: b.TempDir(), maxBytes: defaultBytes,
				maxSpansPerObject: 1000}, slog.New(slog.DiscardHandler))
			var messages [][]byte
			for sent := 0; sent < b.N; sent += batch {
				spans := &trace.ScopeSpans{}
				for i := range batch {
					spans.Spans = append(spans.Spans, span(uint64(sent+i)))
				}
				message, err := proto.Marshal(&otlp.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{
					Resource: &resource.Resource{Attributes: words("service.name", "kubelet",
						"service.version", "v1.36.3", "service.instance.id", "n1")},
					ScopeSpans: []*trace.ScopeSpans{spans}}}})
				if err != nil {
					b.Fatal(err)
				}
				messages = append(messages, message)
			}
			b.ReportAllocs()
			b.ResetTimer()
			begun := cpuTime(b)
			for _, m := range messages {
				if err := receiver.Decode(m, func(r *traces.Record) { p.receivers[0].Keep(r) },
					func(why traces.Reason) { b.Error(why) }); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(cpuTime(b)-begun)/float64(b.N), "cpu-ns/op")
			if n := p.store.Stats().Spans; n == 0 {
				b.Error("nothing is kept")
			}
		})
	}
}

// cpuTime is what the process has used. Time on a clock says little where others use the processors.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// podSpan is a span of one pod in twenty spans.
func podSpan(n uint64) *trace.Span {
	const each = 20
	id := uuid.NewSHA1(uuid.NameSpaceOID, binary.BigEndian.AppendUint64(nil, n/each))
	uid, name := id.String(), fmt.Sprintf("web-6d4cf56db6-%05d", n/each)
	of, _ := traces.TraceOf(types.UID(uid))
	at := uint64(time.Now().UnixNano())
	return &trace.Span{TraceId: of[:], SpanId: binary.BigEndian.AppendUint64(nil, n+1), ParentSpanId: of[:8],
		Flags: 0x101, Name: "kubelet.sandbox", StartTimeUnixNano: at - 1e6, EndTimeUnixNano: at,
		Kind: trace.Span_SPAN_KIND_INTERNAL,
		Attributes: words("bonsai.object.group", "", "bonsai.object.resource", "pods", "bonsai.object.kind", "Pod",
			"bonsai.object.name", name, "bonsai.object.uid", uid, "bonsai.object.namespace", "shop",
			"k8s.namespace.name", "shop", "bonsai.owner.group", "apps", "bonsai.owner.kind", "ReplicaSet", "bonsai.owner.name",
			"web-6d4cf56db6", "bonsai.owner.uid", "9b0e7a51-1f0c-4e46-9d3c-0c8f1f5b9c11", "bonsai.owner.resource",
			"replicasets", "k8s.pod.name", name, "k8s.pod.uid", uid, "k8s.node.name", "n1", "k8s.container.name",
			"web")}
}

// requestSpan is a span of a request that no object links to, four of each.
func requestSpan(n uint64) *trace.Span {
	at := uint64(time.Now().UnixNano())
	return &trace.Span{TraceId: binary.BigEndian.AppendUint64(make([]byte, 8, 16), n/4+1),
		SpanId: binary.BigEndian.AppendUint64(nil, n+1), Flags: 0x101,
		Name: "PATCH /api/v1/namespaces/{namespace}/pods/{name}/status", StartTimeUnixNano: at - 1e6,
		EndTimeUnixNano: at, Kind: trace.Span_SPAN_KIND_SERVER,
		Attributes: words("http.request.method", "PATCH", "http.route",
			"/api/v1/namespaces/{namespace}/pods/{name}/status", "http.response.status_code", "200",
			"bonsai.request.verb", "patch", "bonsai.request.group", "", "bonsai.request.resource", "pods",
			"k8s.namespace.name", "shop", "bonsai.request.subresource", "status", "bonsai.request.name",
			"web-6d4cf56db6-00001", "bonsai.request.audit_id", "9b0e7a51-1f0c-4e46-9d3c-0c8f1f5b9c11")}
}

func words(pairs ...string) (out []*common.KeyValue) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, &common.KeyValue{Key: pairs[i],
			Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: pairs[i+1]}}})
	}
	return out
}
