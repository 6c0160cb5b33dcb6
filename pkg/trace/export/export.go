// Package export sends the spans of a component to a collector, by OpenTelemetry's protocol over gRPC, as a
// TracingConfiguration says. A collector that is gone, slow or full costs spans, and nothing else.
package export

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	tracingapi "k8s.io/component-base/tracing/api/v1"

	"bonsai/pkg/trace"
)

// endpoint is where the collector is by default; upstream's.
const endpoint = "localhost:4317"

// Config describes where the spans of a component come from and go to.
type Config struct {
	// Tracing is the component's configuration, which has been validated; nil: no spans are made.
	Tracing *tracingapi.TracingConfiguration
	// Component, Version and Instance are the Program of the spans.
	Component, Version, Instance string
	// Metrics counts the spans.
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// Open returns the component's Tracer, nil if the configuration wants no spans, and what sends the spans that wait and
// ends the sending, within two seconds. It does not wait for the collector, which may come later, or never.
//
// The connection is without TLS, as upstream's is: the collector is on the same machine, or behind a proxy on it.
func Open(ctx context.Context, c Config) (*trace.Tracer, func(), error) {
	if c.Tracing == nil {
		return nil, func() {}, nil
	}
	to := endpoint
	if e := c.Tracing.Endpoint; e != nil && *e != "" {
		to = *e
	}
	conn, err := grpc.NewClient(to, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: connectTimeout,
			Backoff: backoff.Config{BaseDelay: firstRetry, Multiplier: 1.6, Jitter: 0.2, MaxDelay: longestRetry}}))
	if err != nil {
		return nil, nil, fmt.Errorf("the endpoint of the tracing configuration: %w", err)
	}
	q := newQueue(ctx, newSender(conn, trace.Program{Name: c.Component, Version: c.Version, Instance: c.Instance}),
		newCounts(c.Metrics), c.Log, patience)
	var rate int32
	if r := c.Tracing.SamplingRatePerMillion; r != nil {
		rate = *r
	}
	t := trace.New(trace.Config{Component: c.Component, PerMillion: rate, Outlet: q})
	return t, func() {
		q.Close()
		conn.Close()
	}, nil
}

// How long a connection may take, and the waits between two tries to connect or to send.
const (
	connectTimeout = 5 * time.Second
	firstRetry     = time.Second
	longestRetry   = 10 * time.Second
)

// counts are what became of the spans.
type counts struct{ sent, failed, dropped prometheus.Counter }

func newCounts(r prometheus.Registerer) *counts {
	all := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "bonsai_trace_spans_total",
		Help: "Spans by what became of them: sent to the collector, failed (the collector did not take them in time, or refused them), dropped (the queue was full)."},
		[]string{"result"})
	r.MustRegister(all)
	return &counts{sent: all.WithLabelValues("sent"), failed: all.WithLabelValues("failed"),
		dropped: all.WithLabelValues("dropped")}
}
