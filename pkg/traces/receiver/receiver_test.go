package receiver

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"bonsai/pkg/traces"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const export = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// kept is what a receiver handed on.
type kept struct {
	mu    sync.Mutex
	spans []*traces.Record
	why   traces.Reason
}

func (k *kept) keep(r *traces.Record) traces.Reason {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spans = append(k.spans, clone(r))
	return k.why
}

// start runs a receiver and returns a way to connect to it.
func start(t *testing.T, r *Receiver) func() *grpc.ClientConn {
	t.Helper()
	r.Socket, r.Log = filepath.Join(t.TempDir(), "traces", "otlp.sock"), slog.New(slog.DiscardHandler)
	l, err := r.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return func() *grpc.ClientConn {
		conn, err := grpc.NewClient("unix://"+r.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
}

// TestExport: an exporter's messages arrive, packed or not, and the answer says what was dropped.
func TestExport(t *testing.T) {
	t.Parallel()
	k := &kept{}
	r := &Receiver{Keep: k.keep}
	client := collector.NewTraceServiceClient(start(t, r)())
	for _, options := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} {
		got, err := client.Export(t.Context(), of(podSpan(), podSpan()), options...)
		if err != nil || got.GetPartialSuccess() != nil {
			t.Error(got, err)
		}
	}
	k.why = traces.Duplicate
	if got, err := client.Export(t.Context(), of(podSpan())); err != nil || got.GetPartialSuccess() != nil {
		t.Error(got, err)
	}
	k.why = traces.Contradiction
	got, err := client.Export(t.Context(), of(podSpan(), &trace.Span{}))
	if p := got.GetPartialSuccess(); err != nil || p.GetRejectedSpans() != 2 ||
		p.GetErrorMessage() != "spans were dropped: invalid" {
		t.Error(got, err)
	}
	if diff := cmp.Diff(Stats{Received: 7, Messages: 4, Dropped: map[traces.Reason]uint64{traces.Duplicate: 1,
		traces.Contradiction: 1, traces.Invalid: 1}}, r.Stats()); diff != "" || len(k.spans) != 6 {
		t.Errorf("%d spans, %s", len(k.spans), diff)
	}
	huge := podSpan()
	huge.Name = strings.Repeat("x", MaxMessage)
	if _, err := client.Export(t.Context(), of(huge)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a huge message: %v", err)
	}
	_, err = client.Export(t.Context(), of(huge), grpc.UseCompressor(gzip.Name))
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a huge message, packed: %v", err)
	}
}

// TestSocket: nobody but the owner can reach the socket, and one that a dead process left is replaced.
func TestSocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "traces")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &Receiver{Socket: filepath.Join(dir, "otlp.sock")}
	for range 2 {
		l, err := r.Listen(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		defer l.Close()
		for path, want := range map[string]os.FileMode{dir: 0o700, r.Socket: 0o600} {
			if got, err := os.Stat(path); err != nil || got.Mode().Perm() != want {
				t.Errorf("%s: %v %v", path, got.Mode(), err)
			}
		}
	}
	if _, err := (&Receiver{Socket: "/proc/none/otlp.sock"}).Listen(t.Context()); err == nil {
		t.Error("a socket where there can be none")
	}
}

// stall begins calls whose messages never come, and returns a way to end them.
func stall(t *testing.T, conn *grpc.ClientConn, calls int) (end func()) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	for range calls {
		if _, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, export); err != nil {
			t.Fatal(err)
		}
	}
	return end
}

// TestBrokenSenders: while senders that stop in the middle of their messages hold all places, others are told to try
// again.
func TestBrokenSenders(t *testing.T) {
	t.Parallel()
	r := &Receiver{Keep: (&kept{}).keep, timeout: time.Hour}
	connect := start(t, r)
	var ends []func()
	for range maxRequests / perConnection {
		ends = append(ends, stall(t, connect(), perConnection))
	}
	until(t, "all places are taken", func() bool { return r.requests.Load() == maxRequests })
	client := collector.NewTraceServiceClient(connect())
	if _, err := client.Export(t.Context(), of(podSpan())); status.Code(err) != codes.Unavailable {
		t.Errorf("without a place: %v", err)
	}
	if r.Stats().Refused == 0 {
		t.Error("no refusal is counted")
	}
	for _, end := range ends {
		end()
	}
	until(t, "all places are free", func() bool { return r.requests.Load() == 0 })
	if _, err := client.Export(t.Context(), of(podSpan())); err != nil {
		t.Errorf("with a place: %v", err)
	}
	if err := connect().Invoke(t.Context(), export, &trace.Span{TraceId: []byte("x")}, of()); status.Code(err) !=
		codes.InvalidArgument || r.Stats().Broken != 1 {
		t.Errorf("another message: %v, %+v", err, r.Stats())
	}
	if err := connect().Invoke(t.Context(), "/other.Service/Export", of(), of()); status.Code(err) !=
		codes.Unimplemented {
		t.Errorf("another service: %v", err)
	}
}

// TestSlowSenders: a message that does not come holds its place only for so long.
func TestSlowSenders(t *testing.T) {
	t.Parallel()
	r := &Receiver{Keep: (&kept{}).keep, timeout: 200 * time.Millisecond}
	conn := start(t, r)()
	stall(t, conn, perConnection)
	until(t, "the places are free", func() bool { return r.requests.Load() == 0 })
	if _, err := collector.NewTraceServiceClient(conn).Export(t.Context(), of(podSpan())); err != nil {
		t.Error(err)
	}
}

// TestManyConnections: a sender that opens connections without end gets as many as there may be.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	r := &Receiver{Keep: (&kept{}).keep}
	connect := start(t, r)
	var all []net.Conn
	for range maxConnections {
		conn, err := net.Dial("unix", r.Socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		all = append(all, conn)
	}
	more, err := net.Dial("unix", r.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	if _, err := more.Read(make([]byte, 1)); err == nil {
		t.Error("one connection too many is served")
	}
	for _, conn := range all {
		conn.Close()
	}
	until(t, "there is room again", func() bool {
		_, err := collector.NewTraceServiceClient(connect()).Export(t.Context(), of(podSpan()))
		return err == nil
	})
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late, again := time.After(30*time.Second), time.NewTicker(10*time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-late:
			t.Fatal("never: " + what)
		case <-again.C:
		}
	}
}

// TestNode: what a node's socket takes is that node's, whatever it says, and nothing of the control plane's.
func TestNode(t *testing.T) {
	t.Parallel()
	k := &kept{}
	r := &Receiver{Keep: k.keep, Node: "n7", Nodes: NewNodes()}
	client := collector.NewTraceServiceClient(start(t, r)())
	if _, err := client.Export(t.Context(), of(podSpan())); err != nil || k.spans[0].Instance != "n7" ||
		k.spans[0].Sender != "n7" {
		t.Error(k.spans, err)
	}
	component := of(podSpan())
	component.ResourceSpans[0].Resource.Attributes = attributes("service.name", "kube-apiserver")
	name := of(podSpan())
	name.ResourceSpans[0].ScopeSpans[0].Spans[0].Name = "apiserver.create"
	for _, message := range []*collector.ExportTraceServiceRequest{component, name} {
		got, err := client.Export(t.Context(), message)
		if err != nil || got.PartialSuccess.GetRejectedSpans() != 1 {
			t.Error(got, err)
		}
	}
	if len(k.spans) != 1 || r.Stats().Dropped[traces.Foreign] != 2 {
		t.Error(k.spans, r.Stats())
	}
}

// TestFuture: a span that has not ended yet, as of a clock that nobody set, is not kept.
func TestFuture(t *testing.T) {
	t.Parallel()
	k := &kept{}
	r := &Receiver{Keep: k.keep}
	client := collector.NewTraceServiceClient(start(t, r)())
	for end, want := range map[time.Time]int{time.Now().Add(time.Minute): 1, time.Now().AddDate(100, 0, 0): 0} {
		k.spans = nil
		span := podSpan()
		span.EndTimeUnixNano = uint64(end.UnixNano())
		if _, err := client.Export(t.Context(), of(span)); err != nil || len(k.spans) != want {
			t.Error(end, k.spans, err)
		}
	}
}

// TestRate: a node that sends without end gets the time after which it may try again, in the form that exporters read,
// and is served then.
func TestRate(t *testing.T) {
	t.Parallel()
	k := &kept{}
	r := &Receiver{Keep: k.keep, Node: "n7", Nodes: NewNodes()}
	client := collector.NewTraceServiceClient(start(t, r)())
	large := podSpan()
	large.Name = strings.Repeat("x", MaxMessage/2)
	send := func() error { _, err := client.Export(t.Context(), of(large)); return err }
	taken, err := 0, error(nil)
	for ; err == nil; err = send() {
		if taken++; taken > 100 {
			t.Fatal("there is no bound")
		}
	}
	s := status.Convert(err)
	if s.Code() != codes.ResourceExhausted || len(s.Details()) != 1 || taken < nodeBurst/(MaxMessage/2)-1 {
		t.Fatalf("after %d messages: %v, %v", taken, err, s.Details())
	}
	wait := s.Details()[0].(*errdetails.RetryInfo).RetryDelay.AsDuration()
	if wait <= 0 || wait > MaxMessage/nodeRate*time.Second || r.Stats().Throttled != 1 {
		t.Errorf("come back after %v; %+v", wait, r.Stats())
	}
	until(t, "the node is heard again", func() bool { return send() == nil })
}
