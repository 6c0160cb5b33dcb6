package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	kernel "k8s.io/component-helpers/node/util/sysctl"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/kubelet"
	"bonsai/pkg/kubelet/certificate"
	"bonsai/pkg/kubelet/cm/userns"
	"bonsai/pkg/kubelet/kubeclient"
	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/server"
	"bonsai/pkg/kubelet/sysctl"
)

// defaultContainerLogsDir is where log collectors look for the containers' logs; upstream's.
const defaultContainerLogsDir = "/var/log/containers"

// run composes the kubelet and its servers and runs them until ctx ends. Everything that can fail is made before the
// first part starts, so that no error returns while parts run. The kubelet is closed last: its server uses it.
func run(ctx context.Context, s *settings, log *slog.Logger) (err error) {
	if s.file.ProtectKernelDefaults {
		if err := sysctl.CheckKernel(kernel.New().GetSysctl); err != nil {
			return fmt.Errorf("protectKernelDefaults (--protect-kernel-defaults): %w", err)
		}
	}
	// A machine may refuse a lower score than the kubelet was started with (CAP_SYS_RESOURCE). Pods run all the same.
	if err := os.WriteFile("/proc/self/oom_score_adj", fmt.Append(nil, *s.file.OOMScoreAdj), 0); err != nil {
		log.Warn("cannot set oomScoreAdj", "err", err)
	}
	// More than the hard limit takes CAP_SYS_RESOURCE, too.
	if n := uint64(s.file.MaxOpenFiles); n > 0 {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			log.Warn("cannot set maxOpenFiles", "err", err)
		}
	}
	if s.lock.path != "" {
		release, err := s.lock.take(ctx, log)
		if err != nil {
			return err
		}
		defer release()
	}
	name, err := s.nodeName()
	if err != nil {
		return err
	}
	registry := daemon.NewMetrics()
	var tracing daemon.Tracing
	tracing.Use(s.file.Tracing)
	tracer, lastSpans, err := tracing.Open(ctx, component, name, registry, log)
	if err != nil {
		return err
	}
	defer lastSpans()
	id, err := connect(ctx, s, name, registry, log)
	if err != nil {
		return err
	}
	requests := daemon.NewRequests(registry)
	id.connection = bounded(s.file, id.connection, requests)
	requests.Count(id.connection)
	apiserver, err := kubeclient.New(id.connection)
	if err != nil {
		return fmt.Errorf("make a client for the API server: %w", err)
	}
	// Drivers and log collectors expect these directories, even before the first pod.
	for _, dir := range []string{s.rootDir, s.file.PodLogsDir, s.containerLogsDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	cfg, err := config(s, apiserver, name, log)
	if err != nil {
		return err
	}
	if cfg.Users, err = userns.NodeRanges(ctx, idsPerPod(s.file), int(s.file.MaxPods)); err != nil {
		return err
	}
	cfg.Metrics, cfg.Tracer = registry, tracer
	// The serving certificate has the node's addresses, so its manager must notice their changes.
	observed := notify.New() // the Node changed in the API, and its addresses with it
	cfg.Node.Observed = observed.Notify
	k, err := kubelet.New(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	var serving *certificate.Manager // nil: the certificate stays what it is
	if *s.file.EnableServer && s.file.ServerTLSBootstrap {
		if serving, err = servingCertificates(s, apiserver, name, k.Addresses, observed, registry, log); err != nil {
			return err
		}
	}
	var srv *server.Server // nil: the kubelet serves nothing
	if *s.file.EnableServer {
		if srv, err = api(s, id.connection, k, name, serving, registry, log); err != nil {
			return err
		}
	}
	// From here on parts run. The first error ends all of them, and Wait returns it.
	g, ctx := errgroup.WithContext(ctx)
	for _, m := range []*certificate.Manager{id.certificates, serving} {
		if m != nil {
			g.Go(func() error { return m.Run(ctx) })
		}
	}
	if s.lock.exit {
		g.Go(func() error { return s.lock.contended(ctx) })
	}
	g.Go(func() error { return k.Run(ctx) })
	if srv != nil {
		g.Go(func() error { return srv.Run(ctx) })
	}
	// It is plain HTTP, and on loopback by default: probes of the host need no credentials.
	health := &daemon.Server{
		Listener: daemon.Listener{Address: s.file.HealthzBindAddress, Port: int(*s.file.HealthzPort)},
		Insecure: true, Log: log,
		Live:  []daemon.Check{{Name: "syncloop", Run: k.Healthy}},
		Ready: []daemon.Check{{Name: "syncloop", Run: k.Healthy}}}
	g.Go(func() error { return health.Run(ctx) })
	if err := g.Wait(); !errors.Is(err, errContended) {
		return err
	}
	log.Info("Another kubelet wants the lock file: leaving it the node", "file", s.lock.path)
	return nil
}
