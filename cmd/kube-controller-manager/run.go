package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"bonsai/api/scheme"
	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/coordination"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/trace"
	"bonsai/pkg/zpages"
)

// run serves health and metrics, becomes leader, and runs the controllers until ctx ends or leadership is lost.
//
// The order matters. The server starts first, so that probes see a process that waits. Then the API server is awaited.
// Only the leader builds and runs controllers; losing the lease ends the process, because two sets of controllers would
// undo each other's work.
func run(ctx context.Context, o *options, pages *zpages.Config, log *slog.Logger) error {
	kubeconfig, err := daemon.Kubeconfig("--kubeconfig", o.kubeconfig, o.master, component)
	if err != nil {
		return err
	}
	cfg, err := daemon.Connect(kubeconfig)
	if err != nil {
		return err
	}
	anonymous, err := daemon.Connect(rest.AnonymousClientConfig(kubeconfig))
	if err != nil {
		return err
	}
	shown := newTelemetry(o, daemon.NewMetrics())
	shown.requests.Count(cfg)
	shown.requests.Count(anonymous)
	s := scheme.New()
	// The leader's renewals never wait behind what the controllers send.
	elector, err := apiclient.New(cfg, s)
	if err != nil {
		return err
	}
	root, err := apiclient.New(o.limits.Apply(cfg, shown.requests), s)
	if err != nil {
		return err
	}
	tracer, lastSpans, err := o.tracing.Open(ctx, component, "", shown.registry, log)
	if err != nil {
		return err
	}
	defer lastSpans()
	ctx = trace.With(ctx, tracer)
	m := &manager{o: o, log: log, root: root, anonymous: anonymous, scheme: s, shown: shown}
	guard, err := o.guard.New(component, log)
	if err != nil {
		return err
	}
	metrics, err := o.metrics.Show(shown.registry)
	if err != nil {
		return err
	}
	server := &daemon.Server{
		Listener: o.listener, Clients: guard.Clients, Guard: guard.Wrap, Registry: metrics, Log: log,
		Serving: o.serving, Pages: pages, Extra: o.profiling.Paths(),
	}
	o.profiling.Start()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return server.Run(ctx) })
	elector.Await(ctx, log)
	g.Go(func() error { guard.Run(ctx); return nil })
	g.Go(func() error { return o.elect.Run(ctx, coordination.Leases(elector), shown.election, log, m.run) })
	return g.Wait()
}

// manager builds and runs the controllers.
//
// A process leads once at most: what run builds is never used again.
type manager struct {
	o    *options
	log  *slog.Logger
	root *apiclient.Client
	// anonymous is the connection that the controllers' accounts share.
	anonymous *rest.Config
	scheme    *runtime.Scheme
	shown     *telemetry
}

// run returns when ctx ended and every controller stopped, or when one failed.
//
// All controllers are built before the caches run: an informer that is asked for later would never be filled.
func (m *manager) run(ctx context.Context) error {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(core.NewEventSink(ctx, m.root))
	informers := controller.NewInformers(m.root)

	list, err := selected(m.o.controllers)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	var starts []func() error
	for _, e := range list {
		r, err := m.build(ctx, e, informers, broadcaster)
		if err != nil {
			return fmt.Errorf("building the %s: %w", e.name, err)
		}
		if r == nil || reflect.ValueOf(r).IsNil() {
			m.log.Info("controller has nothing to do with these flags", "controller", e.name)
			continue
		}
		starts = append(starts, func() error { return m.shown.running.run(ctx, cmp.Or(e.alias, e.name), r) })
	}
	m.log.Info("starting controllers", "count", len(starts))
	// The controllers wait for their caches themselves (Loop.Run).
	g.Go(func() error { informers.Run(ctx); return nil })
	for _, start := range starts {
		g.Go(start)
	}
	return g.Wait()
}

// build makes one controller. Caches are read with the manager's own identity and shared by all; only writes, and reads
// past the caches, are made as the controller's account.
func (m *manager) build(ctx context.Context, e entry, informers *controller.Informers,
	b record.EventBroadcaster) (runner, error) {
	client := m.root
	if m.o.useAccounts && e.account != "" {
		var err error
		if client, err = accountClient(ctx, m.root, m.o.limits.Apply(m.anonymous, m.shown.requests), e.account,
			m.scheme); err != nil {
			return nil, err
		}
	}
	return e.build(m.o, controller.Deps{
		Client: client, Informers: informers, Log: m.log.With("controller", e.name), Metrics: m.shown.controllers,
		Workers: m.o.workersOf(e), Now: time.Now,
		Events: b.NewRecorder(m.scheme, corev1.EventSource{Component: cmp.Or(e.source, e.name)}),
	})
}
