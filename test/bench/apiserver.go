package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// step is one load on an API server, which is left out if only scenarios of another name are asked for and no other
// load needs it.
type step struct {
	name   string
	needed bool
	n      int // operations, for the CPU of each
	run    func() (float64, error)
	// alone, if any, measures the bytes of the answers without the API server: how many a second, and the CPU of each
	// in milliseconds.
	alone func() (rate, ms float64, err error)
}

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
		return request{method: "PATCH", path: fmt.Sprintf("%s/p-%d", podsPath, i%1000),
			contentType: "application/merge-patch+json",
			body:        fmt.Appendf(nil, `{"metadata":{"annotations":{"i":"%d-%d"}}}`, i, time.Now().UnixNano()),
			want:        200}
	}
	many := func(n, clients int, make func(i int) request) func() (float64, error) {
		return func() (float64, error) { return srv.load.many(ctx, n, clients, make) }
	}
	read := func(name string, n, clients int, make func(i int) request) step {
		return step{name: fmt.Sprintf("%s, %d clients", name, clients), n: n, run: many(n, clients, make),
			alone: func() (float64, float64, error) { return srv.transport(ctx, n, clients, make(0)) }}
	}
	list := func(accept string) func(int) request {
		return func(int) request { return request{method: "GET", path: podsPath, accept: accept, want: 200} }
	}
	steps := []step{
		{name: "create, 16 clients", needed: true, n: s.pods, run: many(s.pods, 16, func(i int) request {
			return request{method: "POST", path: podsPath, body: pod(i, ""), want: 201}
		})},
		read("get", 2*s.pods, 16, func(i int) request {
			return request{method: "GET", path: fmt.Sprintf("%s/p-%d", podsPath, i%1000), want: 200}
		}),
		{name: "merge-patch, 16 clients", n: 3000, run: many(3000, 16, patch)},
		{name: "first list as JSON", needed: true, n: 1, run: many(1, 1, list(""))},
		read("list all as JSON", 50, 2, list("")),
		read("list all as protobuf", 50, 2, list(protobuf)),
		{name: "events to 200 watchers", n: 200 * 300, run: func() (float64, error) {
			return srv.load.watchAll(ctx, 200, 300, patch)
		}},
	}
	figures, err := srv.steps(ctx, s, steps)
	if err != nil {
		return nil, err
	}
	out = append(out, figures...)
	return append(out, figure{"RSS after all this", "MB", srv.api.memory("VmRSS")},
		figure{"peak RSS", "MB", srv.api.memory("VmHWM")}), nil
}

// measureWrites puts those loads on a fresh API server that extend a plain create: server-side apply, and a webhook.
func measureWrites(ctx context.Context, s side) ([]figure, error) {
	srv, err := startServer(ctx, s)
	if err != nil {
		return nil, err
	}
	defer srv.stop()
	const n = 1000
	steps := []step{{name: "create pods, 16 clients", needed: true, n: n, run: func() (float64, error) {
		return srv.load.many(ctx, n, 16, func(i int) request {
			return request{method: "POST", path: podsPath, body: pod(i, ""), want: 201}
		})
	}}}
	steps = append(steps, srv.applies(ctx, n)...)
	steps = append(steps, step{name: "create pods through one mutating webhook, 16 clients", n: n,
		run: func() (float64, error) {
			return createThroughWebhook(ctx, srv.load, n)
		}})
	return srv.steps(ctx, s, steps)
}

// steps runs those that the side's scenario asks for, and returns the figures of each: how many a second, CPU, and both
// of the bytes alone.
func (s *server) steps(ctx context.Context, asked side, steps []step) ([]figure, error) {
	var out []figure
	for _, step := range steps {
		if !step.needed && !strings.Contains(step.name, asked.scenario) {
			continue
		}
		end := s.profile(ctx, asked.profiles, step.name)
		before := s.api.cpu()
		rate, err := step.run()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		used := s.api.cpu() - before
		if err := end(); err != nil {
			return nil, fmt.Errorf("%s: profile: %w", step.name, err)
		}
		out = append(out, figure{step.name, "/s", rate},
			figure{"  server CPU for each", "ms", used * 1000 / float64(step.n)})
		if step.alone != nil {
			rate, ms, err := step.alone()
			if err != nil {
				return nil, fmt.Errorf("%s: HTTPS alone: %w", step.name, err)
			}
			out = append(out, figure{"  the bytes by HTTPS alone", "/s", rate}, figure{"  its CPU for each", "ms", ms})
		}
	}
	return out, nil
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
