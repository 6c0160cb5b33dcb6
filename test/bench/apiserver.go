package main

import (
	"context"
	"fmt"
	"time"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// measureAPIServer puts one load after the other on a fresh API server. CPU figures are the server's own.
func measureAPIServer(ctx context.Context, s side) ([]figure, error) {
	srv, err := startServer(ctx, s)
	if err != nil {
		return nil, err
	}
	defer srv.stop()
	out := []figure{{"exec to /readyz 200", "s", srv.ready.Seconds()}}
	idle, err := idleCPU(ctx, srv.api, 10*time.Second)
	if err != nil {
		return nil, err
	}
	out = append(out, figure{"idle RSS", "MB", srv.api.memory("VmRSS")}, figure{"idle CPU", "% of a core", idle})
	patch := func(i int) request {
		return request{method: "PATCH", path: fmt.Sprintf("%s/p-%d", podsPath, i%1000), contentType: "application/merge-patch+json",
			body: fmt.Appendf(nil, `{"metadata":{"annotations":{"i":"%d-%d"}}}`, i, time.Now().UnixNano()), want: 200}
	}
	for _, step := range []struct {
		name string
		n    int // operations, for the CPU of each
		run  func() (float64, error)
	}{
		{"create, 16 clients", s.pods, func() (float64, error) {
			return srv.load.many(ctx, s.pods, 16, func(i int) request { return request{method: "POST", path: podsPath, body: pod(i, ""), want: 201} })
		}},
		{"get, 16 clients", 2 * s.pods, func() (float64, error) {
			return srv.load.many(ctx, 2*s.pods, 16, func(i int) request {
				return request{method: "GET", path: fmt.Sprintf("%s/p-%d", podsPath, i%1000), want: 200}
			})
		}},
		{"merge-patch, 16 clients", 3000, func() (float64, error) { return srv.load.many(ctx, 3000, 16, patch) }},
		{"list all as JSON, 2 clients", 20, func() (float64, error) {
			return srv.load.many(ctx, 20, 2, func(int) request { return request{method: "GET", path: podsPath, want: 200} })
		}},
		{"list all as protobuf, 2 clients", 20, func() (float64, error) {
			return srv.load.many(ctx, 20, 2, func(int) request { return request{method: "GET", path: podsPath, accept: protobuf, want: 200} })
		}},
		{"create through one mutating webhook, 16 clients", 1000, func() (float64, error) { return createThroughWebhook(ctx, srv.load, 1000) }},
		{"events to 200 watchers", 200 * 300, func() (float64, error) { return srv.load.watchAll(ctx, 200, 300, patch) }},
	} {
		before := srv.api.cpu()
		rate, err := step.run()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		out = append(out, figure{step.name, "/s", rate}, figure{"  server CPU for each", "ms", (srv.api.cpu() - before) * 1000 / float64(step.n)})
	}
	return append(out, figure{"RSS after all this", "MB", srv.api.memory("VmRSS")}, figure{"peak RSS", "MB", srv.api.memory("VmHWM")}), nil
}

// idleCPU returns what p uses while nobody asks, in per cent of a core.
func idleCPU(ctx context.Context, p *proc, span time.Duration) (float64, error) {
	select { // what start-up left to do
	case <-time.After(3 * time.Second):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	before := p.cpu()
	select {
	case <-time.After(span):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return (p.cpu() - before) / span.Seconds() * 100, nil
}
