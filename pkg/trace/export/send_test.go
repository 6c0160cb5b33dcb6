package export

import (
	"context"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"bonsai/pkg/trace"
)

// answering is a connection to a collector that gives these answers, the last one for ever.
type answering struct {
	grpc.ClientConnInterface
	answers []error
	answer  *collectorv1.ExportTraceServiceResponse
	got     []*collectorv1.ExportTraceServiceRequest
}

func (c *answering) Invoke(_ context.Context, _ string, in, out any, _ ...grpc.CallOption) error {
	data, err := raw{}.Marshal(in)
	if err != nil {
		return err
	}
	m := &collectorv1.ExportTraceServiceRequest{}
	if err := proto.Unmarshal(data.Materialize(), m); err != nil {
		return err
	}
	c.got = append(c.got, m)
	if n := min(len(c.got), len(c.answers)); n > 0 && c.answers[n-1] != nil {
		return c.answers[n-1]
	}
	b, err := proto.Marshal(c.answer)
	if err != nil {
		return err
	}
	return raw{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, out)
}

// later is an answer that says when to come back.
func later(c codes.Code, after time.Duration) error {
	s, err := status.New(c, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	if err != nil {
		panic(err) // the detail can be encoded
	}
	return s.Err()
}

// TestSendAgain: a batch is sent again after the answers that OTLP names for that, when the collector says so or after
// longer and longer pauses, and is given up after a minute.
func TestSendAgain(t *testing.T) {
	t.Parallel()
	failed := func(c codes.Code) error { return status.Error(c, "no") }
	const least, most, seven = firstRetry / 2, 3 * firstRetry / 2, 7 * time.Second // of the first pause
	for name, c := range map[string]struct {
		answers     []error
		least, most time.Duration
		fails       bool
	}{
		"taken":              {nil, 0, 0, false},
		"unavailable":        {[]error{failed(codes.Unavailable), nil}, least, most, false},
		"twice":              {[]error{failed(codes.Aborted), failed(codes.DataLoss), nil}, 3 * least, 3 * most, false},
		"told when":          {[]error{later(codes.ResourceExhausted, seven), nil}, seven, seven, false},
		"full, not told":     {[]error{failed(codes.ResourceExhausted)}, 0, 0, true},
		"refused":            {[]error{failed(codes.InvalidArgument)}, 0, 0, true},
		"never":              {[]error{failed(codes.Unavailable)}, patience, patience, true},
		"told nonsense":      {[]error{later(codes.Unavailable, -time.Hour), nil}, least, most, false},
		"told to come never": {[]error{later(codes.Unavailable, 1000*time.Hour), nil}, patience, patience, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				conn := &answering{answers: c.answers}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				b := &batch{}
				b.add(nil)
				begun := time.Now()
				_, err := newSender(conn, trace.Program{}).Send(ctx, b)
				if took := time.Since(begun); (err != nil) != c.fails || took < c.least || took > c.most {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// TestMessage: a batch is OTLP's message of one program with its spans, and what the collector rejects is read.
func TestMessage(t *testing.T) {
	t.Parallel()
	conn := &answering{answer: &collectorv1.ExportTraceServiceResponse{
		PartialSuccess: &collectorv1.ExportTracePartialSuccess{RejectedSpans: 2, ErrorMessage: "no"}}}
	b := &batch{}
	for _, name := range []string{"one", "two"} {
		span, err := proto.Marshal(&tracev1.Span{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		b.add(span)
	}
	rejected, err := newSender(conn, trace.Program{Name: "kubelet", Version: "v1", Instance: "n1"}).Send(t.Context(), b)
	if rejected != 2 || err != nil {
		t.Errorf("%d rejected, %v", rejected, err)
	}
	of := conn.got[0].ResourceSpans[0]
	spans := of.ScopeSpans[0].Spans
	if len(spans) != 2 || spans[0].Name != "one" || spans[1].Name != "two" ||
		of.ScopeSpans[0].Scope.Name != trace.Scope || of.Resource.Attributes[0].Value.GetStringValue() != "kubelet" {
		t.Errorf("%v", of)
	}
	for _, answer := range [][]byte{nil, {0xff}, {10, 1}, {10, 2, 8, 0xff},
		{10, 11, 8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}} {
		if n := rejectedOf(answer); n < 0 || n > batchSpans {
			t.Errorf("%x: %d", answer, n)
		}
	}
}

// BenchmarkSpan is the cost of a span of a pod from its step to a collector's socket, with the reading of the bytes
// there, in CPU time.
func BenchmarkSpan(b *testing.B) {
	path := filepath.Join(b.TempDir(), "otlp.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(
		func(_ any, stream grpc.ServerStream) error {
			var m []byte
			if err := stream.RecvMsg(&m); err != nil {
				return err
			}
			return stream.SendMsg(mem.BufferSlice{})
		}))
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(listener) }()
	defer func() { server.Stop(); <-served }()
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	to := &direct{b: b, to: newSender(conn, trace.Program{Name: "kubelet", Instance: "n1"}), batch: &batch{}}
	tracer := trace.New(trace.Config{Component: "kubelet", PerMillion: 1_000_000, Outlet: to})
	o := trace.Object{Node: "n1"}
	o.UID, o.Kind, o.Resource = "f3a1c2d4-0b5e-4c6f-8a7b-9c0d1e2f3a4b", "Pod", "pods"
	o.Namespace, o.Name = "shop", "web-6d4cf56db6-x2x9p"
	o.Owner.Group, o.Owner.Kind, o.Owner.Resource = "apps", "ReplicaSet", "replicasets"
	o.Owner.Name, o.Owner.UID = "web-6d4cf56db6", "00112233-4455-4677-8899-aabbccddeeff"
	at, begun := time.Now(), cpuTime(b)
	b.ReportAllocs()
	for b.Loop() {
		tracer.Step(o, trace.Step{Name: "kubelet.sandbox", Start: at, End: at})
	}
	b.ReportMetric(float64(cpuTime(b)-begun)/float64(b.N), "cpu-ns/op")
}

// direct sends each batch as soon as it is full.
type direct struct {
	b     *testing.B
	to    *sender
	batch *batch
}

// Take implements trace.Outlet.
func (d *direct) Take(span []byte) {
	if d.batch.takes(span) {
		d.batch.add(span)
		return
	}
	if _, err := d.to.Send(d.b.Context(), d.batch); err != nil {
		d.b.Error(err)
	}
	d.batch = &batch{}
	d.batch.add(span)
}

// cpuTime is what the process has used. Time on a clock says little where others use the processors.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
