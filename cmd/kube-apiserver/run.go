package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/version"

	"bonsai/api/kubeversion"
	"bonsai/api/resources/rows"
	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/apiserver"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/egress/selector"
	"bonsai/pkg/apiserver/registry/componentstatus"
	"bonsai/pkg/apiserver/runtimeconfig"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/keypair"
	"bonsai/pkg/zpages"
)

// run builds the server from the bottom up and serves until ctx ends.
func run(ctx context.Context, o *options, pages *zpages.Config, log *slog.Logger) error {
	listener, err := o.serving.Listen(net.JoinHostPort(o.bindAddress, strconv.Itoa(o.securePort)))
	if err != nil {
		return fmt.Errorf("listen on the secure port: %w", err)
	}
	defer listener.Close()
	// What the server reads lives until it has answered its last request, which is after ctx has ended, once it serves.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	starts := context.AfterFunc(ctx, end)
	counted := daemon.NewMetrics()
	tracer, lastSpans, err := o.tracing.Open(life, "kube-apiserver", "", counted, log)
	if err != nil {
		return err
	}
	defer lastSpans()
	all := rows.With(rows.Options{Now: time.Now, EventTTL: o.eventTTL, ForbidPrivileged: !o.allowPrivileged})
	encrypted, err := newEncryption(life, o, all, counted, log)
	if err != nil {
		return err
	}
	defer encrypted.close()
	signer, err := newExternalSigner(life, o, counted, log)
	if err != nil {
		return err
	}
	if signer != nil {
		defer signer.Close()
	}
	ways, err := newEgress(o, counted, log)
	if err != nil {
		return err
	}
	toEtcd, err := etcdTLS(o, log)
	if err != nil {
		return err
	}
	transform, err := withStoredJSON(encrypted.transform, all)
	if err != nil {
		return err
	}
	kept, err := openStores(life, o, all, tracer != nil, etcd.Config{Prefix: o.etcdPrefix, TLS: toEtcd,
		Dial: ways.Dial(selector.Etcd), Transform: transform, Log: log,
		Observe: etcd.NewMetrics(counted, resourceOf(all)).Observe})
	if err != nil {
		return err
	}
	defer kept.close()
	counted.MustRegister(databaseSizes(kept.all))
	apis, err := runtimeconfig.Parse(o.runtimeConfig, all)
	if err != nil {
		return err
	}
	if lacking := apis.Lacking(); len(lacking) > 0 {
		log.Warn("--runtime-config switches on APIs that this server does not have", "versions", lacking)
	}
	served, err := catalog.New(life, catalog.Config{Facts: kept.facts, Off: apis.Off, Forget: kept.forget})
	if err != nil {
		return err
	}
	counted.MustRegister(&objects{served, kept.count})
	if err := o.complete(); err != nil {
		return err
	}
	o.parts.Authentication.External = signer
	o.parts.Metrics, o.parts.Fairness.Count, o.parts.Components = counted, kept.atLeast,
		componentstatus.Defaults(kept.servers(), toEtcd, ways.Dial(selector.Etcd))
	o.parts.Egress, o.audit.Webhook.Dial = ways, ways.Dial(selector.ControlPlane)
	parts, err := assemble.NewParts(o.parts, served, kept, all, log)
	if err != nil {
		return err
	}
	config, err := servingTLS(o, parts.ClientAuthorities, log)
	if err != nil {
		return err
	}
	shown, err := o.metrics.Show(counted)
	if err != nil {
		return err
	}
	auditor, err := assemble.NewAuditor(ctx, &o.audit, os.Stdout, counted, log)
	if err != nil {
		return err
	}
	origins, err := apiserver.CompileOrigins(o.origins)
	if err != nil {
		return err
	}
	server, err := assemble.New(assemble.Config{
		Catalog: served, Storage: kept, Rows: all, Parts: *parts,
		MinWatch: time.Duration(o.minRequestTimeout) * time.Second, ServerAddress: o.serverAddress(),
		NoGarbageCollector: !o.collectGarbage, MaxValues: o.maxBodyValues, Aggregation: o.aggregation,
		Egress: ways,
		HTTP: apiserver.Config{
			Listener: listener, TLS: config,
			Live: kept.checks("", o.etcdHealthTimeout), Useful: encrypted.checks,
			Ready: kept.checks("-readiness", o.etcdReadyTimeout), Metrics: shown,
			Version:    versionInfo(),
			MaxReading: o.maxReading, MaxMutating: o.maxMutating, RequestTimeout: o.requestTimeout,
			ShutdownDelay: o.shutdownDelay, SendRetryAfter: o.sendRetryAfter, WatchGrace: o.watchGrace,
			LivezGrace: o.livezGrace, Origins: origins, StrictTransport: strings.Join(o.strictTransport, "; "),
			MaxStreams: o.serving.MaxStreams, Paths: paths(o, pages), GoAwayChance: o.goAwayChance, Auditor: auditor,
			Tracer: tracer, Log: log,
		},
	})
	if err != nil {
		return err
	}
	o.profiling.Start()
	starts()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Run(ctx) })
	group.Go(func() error { return keepHeapSmall(ctx) })
	if encrypted.run != nil {
		group.Go(func() error { return encrypted.run(ctx) })
	}
	if signer != nil {
		group.Go(func() error { return signer.Run(ctx) })
	}
	if o.etcdCompaction > 0 {
		for _, one := range kept.all {
			group.Go(func() error { return one.backend.RunCompactor(ctx, o.etcdCompaction) })
		}
	}
	return group.Wait()
}

// etcdTLS is how etcd is connected to; nil: without TLS.
func etcdTLS(o *options, log *slog.Logger) (*tls.Config, error) {
	if o.etcdCA == "" && o.etcdCert == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.etcdCA != "" {
		pem, err := os.ReadFile(o.etcdCA)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cafile: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--etcd-cafile %s has no certificate", o.etcdCA)
		}
	}
	if o.etcdCert != "" {
		pair, err := keypair.Load(o.etcdCert, o.etcdKey, log)
		if err != nil {
			return nil, fmt.Errorf("--etcd-certfile, --etcd-keyfile: %w", err)
		}
		c.GetClientCertificate = pair.Client
	}
	return c, nil
}

// newEgress reads the file of --egress-selector-config-file; nil without one.
func newEgress(o *options, counted prometheus.Registerer, log *slog.Logger) (*selector.Selector, error) {
	if o.egressSelectorFile == "" {
		return nil, nil
	}
	ways, err := selector.Open(o.egressSelectorFile, selector.Options{Metrics: counted, Log: log})
	if err != nil {
		return nil, fmt.Errorf("--egress-selector-config-file %s: %w", o.egressSelectorFile, err)
	}
	return ways, nil
}

// serverAddress is where clients reach this server, as far as it knows.
func (o *options) serverAddress() string {
	host := o.advertiseAddress
	if host == "" {
		host = o.bindAddress
	}
	return net.JoinHostPort(host, strconv.Itoa(o.securePort))
}

func versionInfo() version.Info {
	return version.Info{Major: kubeversion.Major, Minor: kubeversion.Minor, GitVersion: kubeversion.Git,
		GitTreeState: "clean",
		GoVersion:    runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// paths are those of the process itself, beside what serves the API: profiles, and the pages for people, which list
// what upstream's do.
func paths(o *options, pages *zpages.Config) map[string]http.Handler {
	all := map[string]http.Handler{}
	maps.Copy(all, o.profiling.Paths())
	maps.Copy(all, zpages.Handlers(pages.Listing([]string{"/healthz", "/livez", "/metrics", "/readyz", "/version"})))
	return all
}
