package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The load of measureTracedPods: so many Deployments of so many pods.
const (
	tracedDeployments = 100
	tracedReplicas    = 100
	tracedPods        = tracedDeployments * tracedReplicas
	tracedNodes       = 200
)

// measureTracedPods makes ten thousand pods at once on a control plane without spans, and on one that sends all of them
// to a bonsai-traces with its defaults. Nothing may wait for spans: the pods are to be available as soon. Then it tells
// what the store has kept, how long its answers take, and what kubectl trace makes of it.
func measureTracedPods(ctx context.Context, s side) (_ []figure, err error) {
	alone, err := untraced(ctx, s)
	if err != nil {
		return nil, err
	}
	store, err := newTraceStore()
	if err != nil {
		return nil, err
	}
	p, err := startPlane(ctx, s, tracedNodes, store)
	if err != nil {
		return nil, errors.Join(err, store.stop())
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	traced, err := p.run(ctx, "d", tracedDeployments, tracedReplicas)
	if err != nil {
		return nil, err
	}
	if err := quiet(ctx); err != nil {
		return nil, err
	}
	var out []figure
	for _, step := range []func(context.Context) ([]figure, error){p.kept, p.asked, p.told} {
		more, err := step(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	again, err := untraced(ctx, s)
	return append([]figure{{fmt.Sprintf("%d pods available without spans", tracedPods), "s", alone.Seconds()},
		{"  with all spans", "s", traced.Seconds()}, {"  without, again", "s", again.Seconds()}}, out...), err
}

// untraced returns how long it takes until all pods are available without spans.
func untraced(ctx context.Context, s side) (took time.Duration, err error) {
	p, err := startPlane(ctx, s, tracedNodes, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	return p.run(ctx, "d", tracedDeployments, tracedReplicas)
}

// kept tells what the store has, and what was lost on the way to it.
func (p *plane) kept(ctx context.Context) (out []figure, err error) {
	for _, m := range []struct{ name, unit, label, metric string }{
		{"spans received", "", "", "bonsai_traces_received_spans_total"},
		{"  kept", "", "", "bonsai_traces_spans"}, {"objects whose traces are kept", "", "", "bonsai_traces_objects"},
		{"  that had to go", "", "", "bonsai_traces_evicted_objects_total"},
		{"spans dropped", "", "", "bonsai_traces_dropped_spans_total"},
		{"messages refused", "", "", "bonsai_traces_refused_total"},
		{"bytes of the store", "MB", "", "bonsai_traces_store_bytes"},
		{"  of its files", "MB", "", "bonsai_traces_disk_bytes"}} {
		n, err := p.store.load.metric(ctx, m.metric, m.label)
		if err != nil {
			return nil, err
		}
		if m.unit == "MB" {
			n /= 1 << 20
		}
		out = append(out, figure{m.name, m.unit, n})
	}
	lost, err := p.lost(ctx)
	return append(out, figure{"spans that the API server lost", "", lost},
		figure{"bonsai-traces: RSS", "MB", p.store.proc.memory("VmRSS")},
		figure{"  peak RSS", "MB", p.store.proc.memory("VmHWM")}), err
}

// asks are how often a question is asked; its time is the median.
const asks = 5

// asked tells how long the store's lists take.
func (p *plane) asked(ctx context.Context) (out []figure, err error) {
	for _, question := range []struct{ name, query string }{
		{"list of all traces of pods", "?fieldSelector=object.kind%3DPod"},
		{"  a page of 500", "?fieldSelector=object.kind%3DPod&limit=500"},
		{"  the 10 slowest", "?fieldSelector=object.kind%3DPod&slowest=10"},
		{"  those of one name", "?fieldSelector=object.name%3Dnone"}} {
		var times []float64
		for range asks {
			began := time.Now()
			asked := request{method: "GET", path: tracesPath + question.query, want: 200}
			if err := p.store.load.do(ctx, asked); err != nil {
				return nil, err
			}
			times = append(times, time.Since(began).Seconds()*1000)
		}
		out = append(out, figure{question.name, "ms", middle(times)})
	}
	return append(out, figure{"  RSS after these", "MB", p.store.proc.memory("VmRSS")}), nil
}

// told tells how long kubectl trace takes over all pods.
func (p *plane) told(ctx context.Context) (out []figure, err error) {
	front, err := p.front()
	if err != nil {
		return nil, err
	}
	defer front.Close()
	kubeconfig := filepath.Join(p.store.dir, "kubectl.kubeconfig")
	to := &load{server: front.URL, token: p.srv.load.token}
	if err := os.WriteFile(kubeconfig, to.kubeconfig(), 0o600); err != nil {
		return nil, err
	}
	for _, args := range []string{"--last 1h", "--last 1h --slowest 10"} {
		var times []float64
		for range asks {
			began := time.Now()
			command := exec.CommandContext(ctx, filepath.Join(filepath.Dir(p.store.binary), "kubectl-trace"),
				slices.Concat([]string{"--kubeconfig", kubeconfig, "-n", namespace}, strings.Fields(args))...)
			said, err := command.CombinedOutput()
			if err != nil || !strings.Contains(string(said), "pods of namespace") {
				return nil, fmt.Errorf("kubectl trace %s: %w: %s", args, err, said)
			}
			times = append(times, time.Since(began).Seconds())
		}
		out = append(out, figure{"kubectl trace " + args, "s", middle(times)})
	}
	return out, nil
}

// front is a server that leads to the API server, and for traces.bonsai.io to the store, as an aggregator does: the
// real one leads nowhere on its own machine.
func (p *plane) front() (*httptest.Server, error) {
	api, err := url.Parse(p.srv.load.server)
	if err != nil {
		return nil, err
	}
	store, err := url.Parse(p.store.load.server)
	if err != nil {
		return nil, err
	}
	return httptest.NewTLSServer(&httputil.ReverseProxy{Transport: p.srv.load.client.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			to := api
			if strings.HasPrefix(r.In.URL.Path, "/apis/traces.bonsai.io/") {
				to = store
			}
			r.SetURL(to)
		}, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}}), nil
}
