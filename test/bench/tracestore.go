package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	tracingapi "k8s.io/component-base/tracing/api/v1"

	"bonsai/pkg/trace"
	"bonsai/pkg/trace/export"
)

// allSpans is the highest rate.
const allSpans = 1_000_000

// traceStore is a bonsai-traces beside a server. A nil one is none: the server and those beside it send no spans.
type traceStore struct {
	dir, socket string
	binary      string   // once it runs
	flags       []string // more of them
	proc        *proc
	// load asks the store itself: no API server leads to its own machine.
	load *load
}

// newTraceStore prepares a store; start starts it.
func newTraceStore(flags ...string) (*traceStore, error) {
	dir, err := os.MkdirTemp("", "bonsai-bench-")
	if err != nil {
		return nil, err
	}
	t := &traceStore{dir: dir, socket: filepath.Join(dir, "run", "otlp.sock"), flags: flags}
	config := fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: %s\nsamplingRatePerMillion: %d\n",
		t.endpoint(), allSpans)
	if err := os.WriteFile(filepath.Join(dir, "tracing.yaml"), []byte(config), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return t, nil
}

func (t *traceStore) endpoint() string { return "unix://" + t.socket }

// serverFlags are those of an API server that sends its spans to the store.
func (t *traceStore) serverFlags() []string {
	if t == nil {
		return nil
	}
	return []string{"--tracing-config-file=" + filepath.Join(t.dir, "tracing.yaml")}
}

// env is the environment by which the others send theirs. Kubernetes' own take no notice.
func (t *traceStore) env() []string {
	if t == nil {
		return nil
	}
	return []string{"BONSAI_TRACING_CONFIG_FILE=" + filepath.Join(t.dir, "tracing.yaml")}
}

// tracer makes spans of a component that the benchmark plays, and ends the sending.
func (t *traceStore) tracer(ctx context.Context, component string) (*trace.Tracer, func(), error) {
	if t == nil {
		return nil, func() {}, nil
	}
	endpoint, rate := t.endpoint(), int32(allSpans)
	return export.Open(ctx, export.Config{Component: component, Version: "v1", Instance: "bench",
		Tracing: &tracingapi.TracingConfiguration{Endpoint: &endpoint, SamplingRatePerMillion: &rate},
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
}

// start starts the store, which asks the server who may ask it. It is ours for both sides.
func (t *traceStore) start(ctx context.Context, s side, srv *server) error {
	if t == nil {
		return nil
	}
	kubeconfig := filepath.Join(t.dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, srv.load.kubeconfig(), 0o600); err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	t.binary = filepath.Join(filepath.Dir(s.etcd), "bonsai-traces")
	t.proc, err = start(ctx, filepath.Join(t.dir, "traces.log"), t.binary,
		append([]string{"--otlp-socket=" + t.socket, "--data-dir=" + filepath.Join(t.dir, "data"),
			"--bind-address=127.0.0.1", "--secure-port=" + ports[0], "--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig, "--authentication-skip-lookup"}, t.flags...)...)
	if err != nil {
		return err
	}
	t.load = newLoad("https://127.0.0.1:"+ports[0], srv.load.token)
	if err := t.load.until(ctx, 20*time.Millisecond, request{method: "GET", path: "/readyz", want: 200}); err != nil {
		return fmt.Errorf("bonsai-traces: %w: %s", err, t.proc.tail())
	}
	return nil
}

// tracesPath is the list of the traces of all pods.
const tracesPath = "/apis/traces.bonsai.io/v1alpha1/traces"

func (t *traceStore) stop() error {
	if t == nil {
		return nil
	}
	t.proc.stop()
	return os.RemoveAll(t.dir)
}

// metric adds up the values of a metric, of those whose labels contain a text.
func (l *load) metric(ctx context.Context, name, label string) (sum float64, err error) {
	resp, err := l.open(ctx, request{method: "GET", path: "/metrics"})
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		return 0, fmt.Errorf("metrics: HTTP %d", resp.StatusCode)
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		if !ok || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		labels, value, _ := strings.Cut(rest, " ")
		if !strings.Contains(labels, label) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
