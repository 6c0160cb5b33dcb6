package export_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	tracingapi "k8s.io/component-base/tracing/api/v1"

	"bonsai/pkg/trace"
	"bonsai/pkg/trace/export"
	"bonsai/pkg/trace/tracetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, endpoint string) (*trace.Tracer, func()) {
	t.Helper()
	rate := int32(1_000_000)
	tracer, end, err := export.Open(t.Context(), export.Config{Component: "kubelet", Version: "v1", Instance: "n1",
		Tracing: &tracingapi.TracingConfiguration{Endpoint: &endpoint, SamplingRatePerMillion: &rate},
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return tracer, end
}

func object() (o trace.Object) {
	o.UID, o.Kind, o.Name = "f3a1c2d4-0b5e-4c6f-8a7b-9c0d1e2f3a4b", "Pod", "web"
	return o
}

// TestSend: spans reach a collector with the name of the component, also if it first says that it is not ready.
func TestSend(t *testing.T) {
	c, refused := tracetest.NewCollector(t), false
	c.Answer = func(context.Context) error {
		if !refused {
			refused = true
			return status.Error(codes.Unavailable, "not yet")
		}
		return nil
	}
	tracer, end := open(t, c.Endpoint)
	defer end()
	tracer.Step(object(), trace.Step{Name: "kubelet.seen", Start: time.Unix(1, 0), End: time.Unix(2, 0)})
	got := c.Await(t, "the step", func(r tracetest.Received) bool { return r.Name == "kubelet.seen" })
	if got.TraceOf() != "f3a1c2d40b5e4c6f8a7b9c0d1e2f3a4b" || got.Resource["service.name"] != "kubelet" ||
		got.Resource["service.version"] != "v1" || got.Resource["service.instance.id"] != "n1" ||
		got.Attribute("bonsai.object.name") != "web" {
		t.Errorf("%v of %v", got.Span, got.Resource)
	}
}

// TestGone: nobody waits for a collector that is not there, and the end is within its bound.
func TestGone(t *testing.T) {
	tracer, end := open(t, "unix://"+t.TempDir()+"/nobody.sock")
	for range 10_000 {
		tracer.Step(object(), trace.Step{Name: "kubelet.seen"})
	}
	begun := time.Now()
	end()
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the end took %v", took)
	}
}

// TestNone: without a configuration there is no Tracer.
func TestNone(t *testing.T) {
	tracer, end, err := export.Open(t.Context(), export.Config{})
	if tracer != nil || err != nil {
		t.Errorf("%v, %v", tracer, err)
	}
	end()
}
