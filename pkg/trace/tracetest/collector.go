package tracetest

import (
	"context"
	"encoding/hex"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Collector is a collector of spans on a Unix socket.
type Collector struct {
	// Endpoint is that of a TracingConfiguration.
	Endpoint string
	// Answer, if it is set before the first spans come, is asked about each batch; an error refuses it.
	Answer func(ctx context.Context) error
	collectorv1.UnimplementedTraceServiceServer

	mu      sync.Mutex
	spans   []Received
	arrived chan struct{} // closed and replaced when spans arrive
}

// Received is a span with what its sender says of itself.
type Received struct {
	*tracev1.Span
	Resource map[string]string
}

// Attribute returns the value of an attribute, "" if there is none.
func (r Received) Attribute(key string) string { return attributes(r.Attributes)[key] }

// TraceOf and IDOf are the span's ids in hexadecimal digits, as traces.bonsai.io has them.
func (r Received) TraceOf() string { return hex.EncodeToString(r.TraceId) }

// IDOf is the span's id.
func (r Received) IDOf() string { return hex.EncodeToString(r.SpanId) }

// Relations are the trace ids that the span links to, by relation.
func (r Received) Relations() map[string]string {
	out := map[string]string{}
	for _, l := range r.Links {
		out[attributes(l.Attributes)["bonsai.link.relation"]] = hex.EncodeToString(l.TraceId)
	}
	return out
}

func attributes(list []*commonv1.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range list {
		out[a.Key] = a.Value.GetStringValue()
	}
	return out
}

// NewCollector returns a collector that listens until the test ends.
func NewCollector(t testing.TB) *Collector {
	t.Helper()
	path := filepath.Join(t.TempDir(), "otlp.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{Endpoint: "unix://" + path, arrived: make(chan struct{})}
	server := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, c)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // it ends with Stop
	}()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
	return c
}

// Export implements OpenTelemetry's service.
func (c *Collector) Export(ctx context.Context, r *collectorv1.ExportTraceServiceRequest) (
	*collectorv1.ExportTraceServiceResponse, error) {
	if c.Answer != nil {
		if err := c.Answer(ctx); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.ResourceSpans {
		resource := attributes(of.Resource.GetAttributes())
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, Received{s, resource})
			}
		}
	}
	close(c.arrived)
	c.arrived = make(chan struct{})
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// Spans returns what has arrived.
func (c *Collector) Spans() []Received {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Await waits until a span has arrived that is wanted, and returns the first one.
func (c *Collector) Await(t testing.TB, what string, wanted func(Received) bool) Received {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		c.mu.Lock()
		arrived := c.arrived
		i := slices.IndexFunc(c.spans, wanted)
		if i >= 0 {
			defer c.mu.Unlock()
			return c.spans[i]
		}
		c.mu.Unlock()
		select {
		case <-arrived:
		case <-deadline:
			var names []string
			for _, s := range c.Spans() {
				names = append(names, s.Name)
			}
			t.Fatalf("no span has arrived of %s, but: %q", what, names)
		}
	}
}
