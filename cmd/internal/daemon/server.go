package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"bonsai/api/kubeversion"
	"bonsai/pkg/authorities"
	"bonsai/pkg/connlimit"
	"bonsai/pkg/featuregates"
	"bonsai/pkg/health"
	"bonsai/pkg/keypair"
	"bonsai/pkg/privatesocket"
	"bonsai/pkg/zpages"
)

// Check is one named health check; nil means healthy.
type Check struct {
	Name string
	Run  func() error
}

// Server serves /healthz, /livez, /readyz (and below them one path per check), /version, /metrics and /metrics/slis of
// a component, over HTTPS with a self-signed certificate unless one is given, or plainly when Insecure.
type Server struct {
	Listener
	// Sockets are paths of Unix sockets on which the same is served, over TLS too. Only their owner can connect. One
	// that cannot be made is logged and left out if there is another way: others may write into its directory.
	Sockets     []string
	Insecure    bool
	Serving     Serving
	Live, Ready []Check
	Registry    Registry
	// Clients are the authorities whose certificates clients are asked for, which Guard verifies; nil: no client is
	// asked.
	Clients *authorities.Set
	// Guard stands before all paths and decides who may use which.
	// Nil serves everyone who reaches Address: such a server shows nothing secret, or listens on loopback.
	Guard func(http.Handler) http.Handler
	// Pages are what /statusz and /flagz show; nil: they are not served. Its Paths are filled in.
	Pages *zpages.Config
	// Extra are further paths of the component.
	Extra map[string]http.Handler
	Log   *slog.Logger
}

// Registry takes metrics, and gathers them for /metrics.
type Registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// NewMetrics returns a registry with the metrics that every component shows: those of its version, its process and the
// Go runtime.
func NewMetrics() *prometheus.Registry {
	r := prometheus.NewRegistry()
	registerCommon(r)
	return r
}

func registerCommon(r prometheus.Registerer) {
	build := prometheus.NewGauge(
		prometheus.GaugeOpts{Name: "kubernetes_build_info", Help: "The version that was built. The value is always 1.",
			ConstLabels: prometheus.Labels{"major": kubeversion.Major, "minor": kubeversion.Minor,
				"git_version": kubeversion.Git, "git_commit": "", "git_tree_state": "",
				"build_date": "1970-01-01T00:00:00Z",
				"go_version": goruntime.Version(), "compiler": goruntime.Compiler,
				"platform": goruntime.GOOS + "/" + goruntime.GOARCH}})
	build.Set(1)
	version := prometheus.NewGauge(
		prometheus.GaugeOpts{Name: "version_info",
			Help: "Which version this is and behaves as, and the oldest that it gets on with. The value is always 1.",
			ConstLabels: prometheus.Labels{"component": "kube", "binary": strings.TrimPrefix(kubeversion.Release, "v"),
				"emulation": kubeversion.API, "min_compat": kubeversion.Previous}})
	version.Set(1)
	r.MustRegister(version, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build, featuregates.NewMetric())
}

// How long a client may take to send a request and to take its answer, and to send nothing between two; and how much a
// request's header may be, in bytes.
const (
	requestTimeout = time.Minute
	idleTimeout    = 90 * time.Second
	maxHeaderBytes = 64 << 10
)

// How many connections there may be on which no request was trusted yet (connlimit.Trust), and what may have been
// received on all of them, in bytes. Clients are a few monitors and probes, whose requests take milliseconds; an
// address that is not loopback is reached from every pod. maxAhead is what an HTTP/2 client may send before it is read,
// in bytes: the first requests of one connection must not reach the bound.
const (
	maxUntrusted      = 256
	maxUntrustedBytes = 1 << 20
	maxAhead          = 256 << 10
)

// Run serves until ctx ends; requests under way get five seconds.
func (s *Server) Run(ctx context.Context) error {
	listeners, err := s.listen(ctx)
	if err != nil {
		return err
	}
	if len(listeners) == 0 {
		<-ctx.Done()
		return nil
	}
	return s.serve(ctx, listeners...)
}

// listen listens at the address and on the sockets.
func (s *Server) listen(ctx context.Context) (all []net.Listener, err error) {
	if s.Port != 0 {
		address := net.JoinHostPort(s.Address, strconv.Itoa(s.Port))
		l, err := s.Serving.Listen(address)
		if err != nil {
			return nil, fmt.Errorf("listen on %s: %w", address, err)
		}
		all = append(all, l)
	}
	var failed []error
	for _, path := range s.Sockets {
		l, err := privatesocket.Listen(ctx, path)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		all = append(all, l)
	}
	if len(all) == 0 {
		return nil, errors.Join(failed...)
	}
	for _, err := range failed {
		s.Log.Error("nothing is served on a socket", "err", err)
	}
	return all, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

// serve is Run on listeners, which it closes.
func (s *Server) serve(ctx context.Context, listeners ...net.Listener) error {
	untrusted := connlimit.NewUntrusted(connlimit.UntrustedConfig{Most: maxUntrusted, Bytes: maxUntrustedBytes})
	for i, l := range listeners {
		listeners[i] = untrusted.Listener(l)
	}
	if !s.Insecure {
		current, err := s.certificate()
		if err != nil {
			closeAll(listeners)
			return err
		}
		config, err := s.Serving.TLS(current, s.Log)
		if err != nil {
			closeAll(listeners)
			return err
		}
		if s.Clients != nil {
			s.Clients.Ask(config)
		}
		for i, l := range listeners {
			listeners[i] = tls.NewListener(l, config)
		}
	}
	// Profiles lengthen the time for their answer themselves.
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: requestTimeout,
		WriteTimeout: requestTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		ConnContext:    connlimit.ConnContext,
		ConnState:      connlimit.ConnState,
		HTTP2: &http.HTTP2Config{WriteByteTimeout: requestTimeout, MaxConcurrentStreams: s.Serving.MaxStreams,
			MaxReceiveBufferPerConnection: maxAhead, MaxReceiveBufferPerStream: maxAhead},
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)}
	done := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() {
			err := server.Serve(l)
			done <- fmt.Errorf("serve health on %s: %w", l.Addr(), err)
		}()
	}
	select {
	case err := <-done:
		server.Close() // the others, too
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(grace); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	for range listeners {
		<-done
	}
	return nil
}

// certificate returns what the certificate is at a moment.
func (s *Server) certificate() (func() *tls.Certificate, error) {
	if s.CertFile != "" || s.KeyFile != "" {
		pair, err := keypair.Load(s.CertFile, s.KeyFile, s.Log)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert-file %q, --tls-private-key-file %q: %w", s.CertFile, s.KeyFile, err)
		}
		return pair.Current, nil
	}
	host := s.Address
	if net.ParseIP(host).IsUnspecified() {
		host, _ = os.Hostname() // "" is left out
	}
	if s.CertDir != "" {
		pair, err := KeptSelfSigned(s.CertDir, s.CertName, host, s.Log)
		if err != nil {
			return nil, err
		}
		return pair.Current, nil
	}
	own, err := selfSigned(host)
	return func() *tls.Certificate { return &own }, err
}

func (s *Server) handler() http.Handler {
	paths := map[string]http.Handler{}
	endpoints := health.New(s.Log)
	for name, checks := range map[string][]health.Check{"livez": named(s.Live), "healthz": named(s.Live, s.Ready),
		"readyz": named(s.Live, s.Ready)} {
		maps.Copy(paths, endpoints.Paths(name, checks))
	}
	paths["/metrics/slis"] = endpoints.SLIs()
	paths["/version"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"major":%q,"minor":%q,"gitVersion":%q}`+"\n", kubeversion.Major, kubeversion.Minor,
			kubeversion.Git)
	})
	if s.Registry != nil {
		paths["/metrics"] = promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{})
	}
	maps.Copy(paths, s.Extra)
	if s.Pages != nil {
		maps.Copy(paths, zpages.Handlers(s.Pages.Listing(slices.Collect(maps.Keys(paths)))))
	}
	mux := http.NewServeMux()
	for path, h := range paths {
		mux.Handle(path, h)
	}
	if s.Guard == nil {
		return mux
	}
	return s.Guard(mux)
}

// named makes Checks of the component's own, behind ping: a component that answers is there.
func named(checks ...[]Check) []health.Check {
	list := []health.Check{health.Ping()}
	for _, c := range slices.Concat(checks...) {
		if !slices.ContainsFunc(list, func(other health.Check) bool { return other.Name == c.Name }) {
			list = append(list, health.Check{Name: c.Name, Run: func(*http.Request) error { return c.Run() }})
		}
	}
	return list
}
