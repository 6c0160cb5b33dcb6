package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/coordination"
	"bonsai/pkg/scheduler"
	"bonsai/pkg/scheduler/cache"
	"bonsai/pkg/scheduler/decide"
	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/event"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/plugins/noderesources"
	"bonsai/pkg/scheduler/podstatus"
	"bonsai/pkg/scheduler/preemption"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/queue"
	"bonsai/pkg/scheduler/volumes"
	"bonsai/pkg/scheduler/write"
)

// binders is how many bindings may be under way at once: enough to keep the API server busy, few enough to be polite.
const binders = 48

// writers is how many conditions and nominations of waiting pods may be written at once.
const writers = 16

// run serves health and metrics, becomes leader, and schedules until ctx ends or leadership is lost.
func run(ctx context.Context, o *options, cfg *configv1.KubeSchedulerConfiguration, log *slog.Logger) error {
	klog.SetSlogLogger(log)
	rc, err := daemon.Client("--kubeconfig", o.kubeconfig, o.master, component)
	if err != nil {
		return err
	}
	shown := newTelemetry(o)
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
	writer := write.New(c)
	recorder := event.New(writer, host, time.Now, log)
	w := newWorld(c, log)
	s, err := build(o, cfg, writer, w, recorder, shown.scheduler, log)
	if err != nil {
		return err
	}
	shown.read(s, w)
	w.feed(s)
	guard, err := o.guard.New(component, log)
	if err != nil {
		return err
	}
	server := &daemon.Server{
		Address: o.bindAddress, Port: o.securePort, CertFile: o.certFile, KeyFile: o.keyFile, CertDir: o.certDir, CertName: component, Clients: guard.Clients, Guard: guard.Wrap, Registry: shown.registry, Log: log,
		Ready: []daemon.Check{{Name: "informer-sync", Run: func() error {
			if !w.synced() {
				return errors.New("not synced")
			}
			return nil
		}}},
		Serving: o.serving, Extra: extra(o, s, shown),
	}
	o.profiling.Start()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return server.Run(ctx) })
	elector.Await(ctx, log)
	g.Go(func() error { guard.Run(ctx); return nil })
	g.Go(func() error { w.run(ctx); return nil })
	g.Go(func() error { recorder.Run(ctx); return nil })
	g.Go(func() error {
		return o.elect.Run(ctx, coordination.Leases(elector), shown.election, log, func(ctx context.Context) error {
			if !w.wait(ctx) {
				return nil
			}
			log.Info("scheduling", "profiles", len(s.Profiles), "nodes", w.nodes.Len())
			return s.Run(ctx)
		})
	})
	return g.Wait()
}

// newClient returns a client for what the scheduler reads and writes.
func newClient(config *rest.Config) (*apiclient.Client, error) {
	s, err := apiclient.NewScheme(corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, policyv1.AddToScheme, eventsv1.AddToScheme, resourcev1.AddToScheme, storagev1.AddToScheme)
	if err != nil {
		return nil, err
	}
	return apiclient.New(config, s)
}

// extra are the paths beyond health and metrics of the process: why pods wait, what pods ask for, and profiles.
func extra(o *options, s *scheduler.Scheduler, t *telemetry) map[string]http.Handler {
	paths := map[string]http.Handler{"/debug/scheduling": http.HandlerFunc(s.Explain), "/metrics/resources": promhttp.HandlerFor(t.resources, promhttp.HandlerOpts{})}
	maps.Copy(paths, o.profiling.Paths())
	return paths
}

// build puts the scheduler together.
func build(o *options, cfg *configv1.KubeSchedulerConfiguration, api *write.Writer, w *world, recorder *event.Recorder, metrics *scheduler.Metrics, log *slog.Logger) (*scheduler.Scheduler, error) {
	nominator, statuses, claims, reserved := model.NewNominator(), podstatus.New(api, writers, log), volumes.New(api), devices.New(api, time.Now)
	var q *queue.Queue
	profiles := map[string]*profile.Profile{}
	var sort framework.QueueSort
	extenders, err := newExtenders(cfg, log)
	if err != nil {
		return nil, err
	}
	for i := range cfg.Profiles {
		p := &cfg.Profiles[i]
		preempt := &preemption.Plugin{API: api, Budgets: w.budgets, Statuses: statuses, Recorder: recorder, Nominator: nominator, Now: time.Now, Log: log, Metrics: metrics}
		preempt.Evicted = func(pod types.UID, err error) {
			if err != nil {
				q.Retry(pod)
				return
			}
			q.Ungate(pod)
		}
		list, err := enabled(p, plugins.Config{Fit: noderesources.Fit{Ignored: ignored(cfg.Extenders), ByDevices: reserved.GivenByClass}, Binder: api, Workloads: w.workloads, Namespaces: w, Preemption: preempt, Volumes: claims, AvoidPods: o.policyFile != "", Node: w.node, Devices: reserved, Log: log})
		if err != nil {
			return nil, err
		}
		built, err := profile.New(*p.SchedulerName, list)
		if err != nil {
			return nil, err
		}
		built.Extenders, preempt.Profile = extenders, built
		profiles[*p.SchedulerName], sort = built, built.Sort
	}
	q = queue.New(queue.Config{
		Profile: func(p *model.PodInfo) *profile.Profile { return profiles[p.Pod.Spec.SchedulerName] },
		Less:    sort.Less, Now: time.Now, InitialBackoff: seconds(cfg.PodInitialBackoffSeconds), MaxBackoff: seconds(cfg.PodMaxBackoffSeconds),
		MaxUnschedulable: o.maxUnschedulable, Incoming: metrics.Incoming,
	})
	return scheduler.New(scheduler.Config{
		Statuses: statuses, Recorder: recorder, Profiles: profiles, Cache: cache.New(0), Queue: q, Nominator: nominator, Volumes: claims, Devices: reserved,
		Decider: decide.NewIncremental(nominator, rand.IntN), Binders: binders, Now: time.Now, Log: log, Metrics: metrics,
	})
}
