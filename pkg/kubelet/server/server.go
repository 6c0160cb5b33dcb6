// Package server is the kubelet's HTTPS API on port 10250. The API server uses it for logs, exec, attach and
// port-forward, monitoring for pods, statistics and metrics. Every request is authenticated (client certificate or
// bearer token) and authorized against the node's subresource that its path stands for, in one visible chain: nothing
// is served outside it.
//
// The API: https://kubernetes.io/docs/reference/access-authn-authz/kubelet-authn-authz/.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"bonsai/pkg/authorities"
	"bonsai/pkg/connlimit"
	"bonsai/pkg/delegated"
	"bonsai/pkg/health"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/safetext"
	"bonsai/pkg/slowclient"
	"bonsai/pkg/zpages"
)

// Pods has the pods of the node.
type Pods interface {
	// Pods returns all pods of the node with their statuses as the kubelet sees them.
	Pods() []*corev1.Pod
	// Pod finds a pod by name.
	Pod(namespace, name string) (*corev1.Pod, bool)
}

// Runtime shows what runs and opens streams. It returns the URL at which the container runtime serves a stream; the
// server only passes the client's connection on.
type Runtime interface {
	// RunningPods returns what runs according to the runtime.
	RunningPods(ctx context.Context) ([]*corev1.Pod, error)
	Exec(ctx context.Context, pod *corev1.Pod, container string, command []string, s runtime.Streams) (*url.URL, error)
	Attach(ctx context.Context, pod *corev1.Pod, container string, s runtime.Streams) (*url.URL, error)
	PortForward(ctx context.Context, pod *corev1.Pod, ports []int32) (*url.URL, error)
	// Checkpoint writes a container's checkpoint and returns the archive's path; timeout 0 is the runtime's usual time.
	Checkpoint(ctx context.Context, pod *corev1.Pod, container string, timeout time.Duration) (string, error)
	// Run runs a command to its end and returns its output.
	Run(ctx context.Context, pod *corev1.Pod, container string, command []string) ([]byte, error)
}

// Logs writes the log of a container. An error before the first byte is shown to the client as it is.
type Logs interface {
	ContainerLogs(ctx context.Context, pod *corev1.Pod, container string, o *corev1.PodLogOptions, stdout,
		stderr io.Writer) error
}

// Config is what a Server needs. Authenticator, Authorizer, Pods, Runtime, Logs, Certificate and Log are required.
type Config struct {
	// Address is where to listen, 0.0.0.0:10250 by default.
	Address  string
	NodeName string
	// Certificate is called at each handshake; nil: there is none yet, and the handshake fails.
	Certificate func() *tls.Certificate
	// TLS has the versions, cipher suites and curves; nil: TLS 1.2 and later, with Go's choice.
	TLS *tls.Config
	// Clients are the authorities whose certificates clients are asked for, which an authenticator verifies; nil: no
	// client is asked.
	Clients       *authorities.Set
	Authenticator delegated.Authenticator
	Authorizer    delegated.Authorizer
	Pods          Pods
	Runtime       Runtime
	Logs          Logs
	// Stats computes /stats/summary, or its CPU and memory only; nil answers 404, as for /metrics/resource.
	Stats func(ctx context.Context, onlyCPUAndMemory bool) (*statsapi.Summary, error)
	// Cadvisor serves /metrics/cadvisor, Probes /metrics/probes. Nil answers 404.
	Cadvisor, Probes http.Handler
	// Registry gets the figures of the server's requests; nil: they are not counted.
	Registry prometheus.Registerer
	// Metrics serves /metrics; Configz returns what /configz shows as kubeletconfig. Nil answers 404.
	Metrics http.Handler
	Configz func() any
	// LogDir is served under /logs/ (/var/log); empty refuses that.
	LogDir string
	// Pages are what /statusz and /flagz show; nil answers 404. Its Paths are filled in.
	Pages *zpages.Config
	// Profiles serve profiles of the kubelet's own process, by path (/debug/pprof/ and below); empty refuses them
	// (enableProfilingHandler: false).
	Profiles map[string]http.Handler
	// NoDebugging refuses what shows the inside of pods or of the kubelet, runs something there, or shows the node's
	// logs (enableDebuggingHandlers: false).
	NoDebugging bool
	// Idle is how long a connection of exec, attach or port-forward may be idle; 0 or less: for ever.
	Idle time.Duration
	// Healthy returns what is wrong with the container runtime, nil if nothing is. It is the check "syncloop": without
	// the runtime no pod is synced.
	Healthy func() error
	Log     *slog.Logger
}

// Server serves the kubelet's API.
type Server struct {
	cfg     Config
	handler http.Handler
	// checkpoints has room for the one checkpoint that may be under way.
	checkpoints chan struct{}
}

// New checks the configuration and builds the chain: panics are caught outermost, then requests are counted,
// authenticated and authorized, and only then routed. An unknown path needs authorization too, so that paths cannot be
// probed.
func New(cfg Config) (*Server, error) {
	if cfg.Authenticator == nil || cfg.Authorizer == nil || cfg.Pods == nil || cfg.Runtime == nil || cfg.Logs == nil ||
		cfg.Certificate == nil || cfg.Log == nil {
		return nil, errors.New("server: Authenticator, Authorizer, Pods, Runtime, Logs, Certificate and Log are required")
	}
	if cfg.Address == "" {
		cfg.Address = "0.0.0.0:10250"
	}
	if cfg.Healthy == nil {
		cfg.Healthy = func() error { return nil }
	}
	s := &Server{cfg: cfg, checkpoints: make(chan struct{}, 1)}
	routes, err := s.routes()
	if err != nil {
		return nil, err
	}
	known := s.authenticated(s.authorized(routes))
	if cfg.Registry != nil {
		known = newRequests(cfg.Registry).counted(known)
	}
	s.handler = s.recoverPanics(known)
	return s, nil
}

// routes returns the handlers of every path that the server knows.
func (s *Server) routes() (http.Handler, error) {
	mux := http.NewServeMux()
	endpoints := health.New(s.cfg.Log)
	// Upstream checks that its log is flushed. Ours is written at once, so there is nothing to check.
	log := health.Check{Name: "log", Run: func(*http.Request) error { return nil }}
	syncloop := health.Check{Name: "syncloop", Run: func(*http.Request) error { return s.cfg.Healthy() }}
	for path, h := range endpoints.Paths("healthz", []health.Check{health.Ping(), log, syncloop}) {
		mux.Handle("GET "+path, h)
	}
	mux.Handle("GET /metrics/slis", endpoints.SLIs())
	mux.HandleFunc("GET /pods", s.pods)
	mux.HandleFunc("GET /pods/{$}", s.pods)
	mux.HandleFunc("POST /checkpoint/{namespace}/{pod}/{container}", streamed(s.checkpoint))
	if err := s.debugging(mux); err != nil {
		return nil, err
	}
	if s.cfg.Stats != nil {
		mux.HandleFunc("GET /stats/summary", s.stats)
		mux.HandleFunc("GET /metrics/resource", s.resourceMetrics)
	}
	if s.cfg.Metrics != nil {
		mux.Handle("GET /metrics", s.cfg.Metrics)
	}
	if s.cfg.Cadvisor != nil {
		mux.Handle("GET /metrics/cadvisor", s.cfg.Cadvisor)
	}
	if s.cfg.Probes != nil {
		mux.Handle("GET /metrics/probes", s.cfg.Probes)
	}
	if s.cfg.Configz != nil {
		mux.HandleFunc("GET /configz", s.configz)
	}
	if s.cfg.Pages != nil {
		for path, h := range zpages.Handlers(
			s.cfg.Pages.Listing([]string{"/configz", "/healthz", "/metrics", "/pods"})) {
			mux.Handle("GET "+path, h)
		}
	}
	return mux, nil
}

// Handler returns the whole chain, for another listener.
func (s *Server) Handler() http.Handler { return s.handler }

// Limits against slow clients: the time to send a request's header, to send all of it and to take the answer, and the
// time that open requests get when the server stops. Streams have no end, but their client must take each piece within
// streamPatience: a person may stop the output and read it.
const (
	headerTimeout  = 32 * time.Second
	requestTimeout = time.Minute
	idleTimeout    = 90 * time.Second
	stopTimeout    = 2 * time.Second
	streamPatience = 10 * time.Minute
	maxHeaderBytes = 64 << 10
)

// Limits against clients that open many connections: all, and bytes of unanswered requests. Every pod reaches the port.
// A connection counts until a request of a known user was allowed on it. So the API server's streams, which may be many
// and silent for hours, do not count.
//
// The API server may open some 600 connections at once, one for each exec that it serves, and sends some 4 KiB of TLS
// and header on each until it is known.
const (
	maxUntrusted      = 1000
	maxUntrustedBytes = 4 << 20
)

// streamed wraps a handler whose answer lasts as long as the client likes. It replaces the server's timeout for the
// whole answer by streamPatience for each piece.
func streamed(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := slowclient.Stream(w, streamPatience)
		defer s.End()
		h(s, r)
	}
}

// Run listens and serves until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.Address)
	if err != nil {
		return fmt.Errorf("listen for the kubelet's API: %w", err)
	}
	return s.Serve(ctx, l)
}

// Serve serves on l until ctx is done. Requests run under ctx, so those that watch it end with it; the others get
// stopTimeout.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.cfg.TLS != nil {
		config = s.cfg.TLS.Clone()
	}
	config.GetCertificate = s.certificate
	if s.cfg.Clients != nil {
		s.cfg.Clients.Ask(config)
	}
	srv := &http.Server{Handler: s.handler, TLSConfig: config, ReadHeaderTimeout: headerTimeout,
		ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		HTTP2:       &http.HTTP2Config{WriteByteTimeout: requestTimeout},
		ConnContext: connlimit.ConnContext,
		ConnState:   connlimit.ConnState,
		BaseContext: func(net.Listener) context.Context {
			return ctx
		}, ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug)}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if srv.Shutdown(grace) != nil {
			srv.Close()
		}
	})
	untrusted := connlimit.NewUntrusted(connlimit.UntrustedConfig{Most: maxUntrusted, Bytes: maxUntrustedBytes})
	err := srv.ServeTLS(untrusted.Listener(l), "", "")
	if !stop() {
		<-stopped
		return nil
	}
	return fmt.Errorf("serve the kubelet's API: %w", err)
}

// certificate returns the current certificate at each handshake, so that a renewed one needs no restart.
func (s *Server) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.cfg.Certificate(); c != nil {
		return c, nil
	}
	return nil, errors.New("no serving certificate available for the kubelet")
}

// recoverPanics keeps one bad request from ending the kubelet.
func (s *Server) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p)
			}
			s.cfg.Log.Error("request panicked", "method", safetext.Text(r.Method),
				"path", safetext.Text(r.URL.Path), "panic", p)
			http.Error(w, "internal error", http.StatusInternalServerError)
		}()
		next.ServeHTTP(w, r)
	})
}
