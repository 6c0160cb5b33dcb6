package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"runtime/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/rest"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"bonsai/cmd/internal/daemon"
	"bonsai/cmd/internal/guard"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/coordination"
	"bonsai/pkg/scheduler"
	"bonsai/pkg/zpages"
)

// run serves health and metrics, becomes leader, and schedules until ctx ends or leadership is lost.
//
// The server starts first, so that probes see a process that waits. Informers run also without leadership: a new leader
// schedules at once. When leadership is lost the process ends, because another one schedules by then.
func run(ctx context.Context, o *options, cfg *configv1.KubeSchedulerConfiguration, pages *zpages.Config,
	log *slog.Logger) error {
	rc, err := daemon.Client("--kubeconfig", o.kubeconfig, o.master, component)
	if err != nil {
		return err
	}
	shown := newTelemetry(o, daemon.NewMetrics(), prometheus.NewRegistry())
	shown.requests.Count(rc)
	// The leader's renewals never wait behind what the scheduler sends.
	elector, err := newClient(rc)
	if err != nil {
		return err
	}
	c, err := newClient(o.limits.Apply(rc, shown.requests))
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming this scheduler: %w", err)
	}
	tracer, lastSpans, err := o.tracing.Open(ctx, component, host, shown.registry, log)
	if err != nil {
		return err
	}
	defer lastSpans()
	w := newWorld(c, log)
	p := newParts(c, host, shown.scheduler, log)
	p.tracer = tracer
	s, err := newScheduler(o, cfg, w, p)
	if err != nil {
		return err
	}
	keep, err := newKeeper(cfg, s.Profiles)
	if err != nil {
		return err
	}
	shown.read(s, w)
	// Before the informers run: a change that nobody hears would be lost.
	w.feed(s, keep)
	guard, err := o.guard.New(component, log)
	if err != nil {
		return err
	}
	metrics, err := o.metrics.Show(shown.registry)
	if err != nil {
		return err
	}
	server := newServer(o, w, guard, extra(o, s, shown), metrics, log)
	server.Pages = pages
	lead := func(ctx context.Context) error {
		return o.elect.Run(ctx, coordination.Leases(elector), shown.election, log, func(ctx context.Context) error {
			if !w.wait(ctx) {
				return nil
			}
			log.Info("scheduling", "profiles", len(s.Profiles), "nodes", w.nodes.Len())
			return s.Run(ctx)
		})
	}
	o.profiling.Start()
	g, ctx := errgroup.WithContext(ctx)
	start := func(runners ...runner) {
		for _, r := range runners {
			g.Go(func() error { return r.do(ctx) })
		}
	}
	start(runner{"server", server.Run})
	elector.Await(ctx, log)
	start(
		runner{"guard", endless(guard.Run)},
		runner{"informers", endless(w.run)},
		runner{"events", endless(p.recorder.Run)},
		runner{"scheduler", lead},
	)
	return g.Wait()
}

// runner is a part of the process that runs until its context ends, or fails.
type runner struct {
	name string
	run  func(context.Context) error
}

// do runs it, with the name as the label "runner" of its goroutines in profiles.
func (r runner) do(ctx context.Context) (err error) {
	pprof.Do(ctx, pprof.Labels("runner", r.name), func(ctx context.Context) { err = r.run(ctx) })
	return err
}

// endless is the runner of a part that cannot fail.
func endless(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error {
		run(ctx)
		return nil
	}
}

// newServer returns the server of health, metrics and the paths in extra.
//
// Ready means that the informers have read everything once, with or without leadership.
func newServer(
	o *options, w *world, g *guard.Guard, extra map[string]http.Handler, r daemon.Registry, log *slog.Logger,
) *daemon.Server {
	return &daemon.Server{
		Listener: o.listener, Clients: g.Clients, Guard: g.Wrap, Registry: r, Log: log,
		Ready: []daemon.Check{{Name: "informer-sync", Run: func() error {
			if !w.synced() {
				return errors.New("not synced")
			}
			return nil
		}}},
		Serving: o.serving, Extra: extra,
	}
}

// newClient returns a client for what the scheduler reads and writes.
func newClient(config *rest.Config) (*apiclient.Client, error) {
	s, err := apiclient.NewScheme(corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme,
		policyv1.AddToScheme, eventsv1.AddToScheme, resourcev1.AddToScheme, storagev1.AddToScheme)
	if err != nil {
		return nil, err
	}
	return apiclient.New(config, s)
}

// extra returns the handlers beyond health and metrics of the process: why pods wait, what pods request, and profiles.
func extra(o *options, s *scheduler.Scheduler, t *telemetry) map[string]http.Handler {
	paths := map[string]http.Handler{
		"/debug/scheduling":  http.HandlerFunc(s.Explain),
		"/metrics/resources": promhttp.HandlerFor(t.resources, promhttp.HandlerOpts{}),
	}
	maps.Copy(paths, o.profiling.Paths())
	return paths
}
