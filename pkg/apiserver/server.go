package apiserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"bonsai/pkg/apiserver/flowcontrol"
	"bonsai/pkg/apiserver/metrics"
)

// Server is the API server: New builds it, Run serves.
type Server struct {
	Config
	limits   *flowcontrol.Limits
	requests *metrics.Requests
	handler  http.Handler
	stopping atomic.Bool
}

// New checks cfg and returns the server, which does nothing until Run.
func New(cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Server{Config: cfg, limits: flowcontrol.New(cfg.MaxReading, cfg.MaxMutating, limitPatience)}
	s.requests = metrics.New(cfg.Metrics, s.limits.InFlight)
	s.handler = s.chain(s.router())
	return s, nil
}

// Handler returns the whole chain, for tests.
func (s *Server) Handler() http.Handler { return s.handler }

// Limits of the HTTP server.
const (
	readHeaderTimeout = 32 * time.Second
	idleTimeout       = 3 * time.Minute
	maxHeaderBytes    = 1 << 20
)

// Run serves until ctx ends. Then /readyz fails, watches and streams end, and other requests get ShutdownTimeout.
func (s *Server) Run(ctx context.Context) error {
	serving, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	server := &http.Server{
		Handler:           s.handler,
		TLSConfig:         s.TLS.Clone(),
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: s.MaxStreams},
		BaseContext:       func(net.Listener) context.Context { return serving },
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	if len(server.TLSConfig.NextProtos) == 0 {
		server.TLSConfig.NextProtos = []string{"h2", "http/1.1"}
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(tls.NewListener(s.Listener, server.TLSConfig)) }()
	s.Log.Info("serving", "address", s.Listener.Addr().String())
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", s.Listener.Addr(), err)
	case <-ctx.Done():
	}
	s.stopping.Store(true)
	s.Log.Info("shutting down", "delay", s.ShutdownDelay)
	select {
	case <-time.After(s.ShutdownDelay):
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", s.Listener.Addr(), err)
	}
	endStreams()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.ShutdownTimeout)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-failed
	return err
}
