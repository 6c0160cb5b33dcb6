package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/version"

	"bonsai/api/resources/rows"
	"bonsai/api/scheme"
	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/apiserver"
	"bonsai/pkg/apiserver/bootstrap"
	"bonsai/pkg/apiserver/discovery"
	"bonsai/pkg/apiserver/openapi"
	"bonsai/pkg/apiserver/registry/serviceip"
	"bonsai/pkg/apiserver/rest"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/apiserver/storage/watchcache"
	"bonsai/pkg/health"
)

// run builds the server from the bottom up and serves until ctx ends.
func run(ctx context.Context, o *options, log *slog.Logger) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(o.bindAddress, strconv.Itoa(o.securePort)))
	if err != nil {
		return fmt.Errorf("listen on the secure port: %w", err)
	}
	defer listener.Close()
	facts := &storage.FactsTable{}
	backend, err := openEtcd(ctx, o, facts, log)
	if err != nil {
		return err
	}
	defer backend.Close()
	all := rows.With(rows.Options{Now: time.Now, EventTTL: o.eventTTL, ForbidPrivileged: !o.allowPrivileged})
	admit := &lateAdmitter{}
	cache, err := watchcache.New(ctx, backend, watchcache.Config{Facts: facts, Log: log})
	if err != nil {
		return fmt.Errorf("start the watch cache: %w", err)
	}
	defer cache.Close()
	s, err := newStores(all, cache, facts, admit)
	if err != nil {
		return err
	}
	if err := addServiceIPs(o, s); err != nil {
		return err
	}
	who, err := newAuthentication(o, s)
	if err != nil {
		return err
	}
	policy, err := bootstrap.DefaultPolicy()
	if err != nil {
		return err
	}
	may := newAuthorization(o, s, policy.ClusterRoleRules("system:node"), log)
	if admit.Admitter, err = newAdmission(o, s, may); err != nil {
		return err
	}
	b, err := newBehaviours(o, s, who, may)
	if err != nil {
		return err
	}
	kinds := scheme.New()
	api, err := rest.New(rest.Config{Scheme: kinds, Resources: b.resources(all, s), Admission: admit, Authorizer: may.authorizer, Hold: apiserver.BoundAnswers(),
		MinWatch: time.Duration(o.minRequestTimeout) * time.Second, Log: log})
	if err != nil {
		return err
	}
	boot, err := newBootstrap(o, s, who, policy, log)
	if err != nil {
		return err
	}
	config, err := servingTLS(o, who.clientCA != nil || who.proxyCA != nil)
	if err != nil {
		return err
	}
	paths := who.keys
	addDocuments(paths, discovery.New(discovery.Config{Rows: all, ServerAddress: o.serverAddress()}), api, "/api", "/api/", "/apis", "/apis/")
	schemas, err := openapi.New(openapi.Config{Rows: all, Scheme: kinds, Version: daemon.GitVersion})
	if err != nil {
		return err
	}
	addDocuments(paths, schemas, api, "/openapi/v2", "/openapi/v3", "/openapi/v3/")
	server, err := apiserver.New(apiserver.Config{
		Listener: listener, TLS: config, API: api, Authenticator: who.authenticator, Authorizer: may.authorizer, Paths: paths,
		Live:    []health.Check{etcdCheck("etcd", backend, o.etcdHealthTimeout)},
		Ready:   slices.Concat([]health.Check{etcdCheck("etcd-readiness", backend, etcdReadyTimeout), may.informerSync()}, bootstrapChecks(boot, policy, may)),
		Metrics: daemon.NewMetrics(), Version: versionInfo(), MaxReading: o.maxReading, MaxMutating: o.maxMutating,
		RequestTimeout: o.requestTimeout, ShutdownDelay: o.shutdownDelay, MaxStreams: o.http2Streams, Profiling: o.profiling, GoAwayChance: o.goAwayChance, Log: log,
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range append(may.runs, boot.Run, server.Run) {
		group.Go(func() error { return f(ctx) })
	}
	if o.etcdCompaction > 0 {
		group.Go(func() error { return backend.RunCompactor(ctx, o.etcdCompaction) })
	}
	return group.Wait()
}

func openEtcd(ctx context.Context, o *options, facts *storage.FactsTable, log *slog.Logger) (*etcd.Store, error) {
	cfg := etcd.Config{Endpoints: o.etcdServers, Prefix: o.etcdPrefix, Facts: facts, Log: log}
	if o.etcdCA != "" || o.etcdCert != "" {
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if o.etcdCA != "" {
		pem, err := os.ReadFile(o.etcdCA)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cafile: %w", err)
		}
		cfg.TLS.RootCAs = x509.NewCertPool()
		if !cfg.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--etcd-cafile %s has no certificate", o.etcdCA)
		}
	}
	if o.etcdCert != "" {
		c, err := tls.LoadX509KeyPair(o.etcdCert, o.etcdKey)
		if err != nil {
			return nil, fmt.Errorf("--etcd-certfile, --etcd-keyfile: %w", err)
		}
		cfg.TLS.Certificates = []tls.Certificate{c}
	}
	return etcd.New(ctx, cfg)
}

// addServiceIPs hooks the allocator of addresses and node ports into the services' store.
func addServiceIPs(o *options, s *stores) error {
	ranges := []netip.Prefix{}
	for part := range strings.SplitSeq(o.serviceRanges, ",") {
		p, err := netip.ParsePrefix(part)
		if err != nil {
			return fmt.Errorf("--service-cluster-ip-range: %w", err)
		}
		ranges = append(ranges, p.Masked())
	}
	a, err := serviceip.New(serviceip.Config{Stores: s, Ranges: ranges, FirstNodePort: o.nodePorts.Base, LastNodePort: o.nodePorts.Base + o.nodePorts.Size - 1})
	if err != nil {
		return err
	}
	s.of("", "services").Hook = a
	return nil
}

// documents answer for the paths they know and tell whether they did.
type documents interface {
	Serve(w http.ResponseWriter, r *http.Request) (bool, error)
}

// addDocuments serves d on paths, which end in "/" for all below them.
func addDocuments(to map[string]http.Handler, d documents, api *rest.API, paths ...string) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ok, err := d.Serve(w, r)
		switch {
		case err != nil:
			api.WriteError(w, r, err)
		case !ok:
			http.NotFound(w, r)
		}
	})
	for _, p := range paths {
		to[p] = h
	}
}

// serverAddress is where clients reach this server, as far as it knows.
func (o *options) serverAddress() string {
	host := o.advertiseAddress
	if host == "" {
		host = o.bindAddress
	}
	return net.JoinHostPort(host, strconv.Itoa(o.securePort))
}

// etcdReadyTimeout is how soon etcd must answer a server that is ready, as upstream's --etcd-readycheck-timeout has it.
const etcdReadyTimeout = 2 * time.Second

func etcdCheck(name string, backend *etcd.Store, timeout time.Duration) health.Check {
	return health.Check{Name: name, Run: func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		_, err := backend.Revision(ctx)
		return err
	}}
}

func versionInfo() version.Info {
	return version.Info{Major: "1", Minor: "36", GitVersion: daemon.GitVersion, GitTreeState: "clean",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH}
}
