package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/impersonation"
	"bonsai/pkg/apiserver/inflight"
	"bonsai/pkg/apiserver/metrics"
	"bonsai/pkg/connlimit"
)

// Server is the API server: New builds it, Run serves. As an http.Handler it is the whole chain.
type Server struct {
	Config
	limits          *inflight.Limits // without Fairness
	bodies          *inflight.Bodies
	receiving       *inflight.Shares // bytes
	streams         *inflight.Shares // count
	requests        *metrics.Requests
	authentications *authn.Attempts
	authorizations  *authz.Attempts
	impersonation   *impersonation.Impersonator
	handler         http.HandlerFunc
	stopping        atomic.Bool
	underWay        atomic.Int64 // requests that have not been answered
	leaving         leaving
	began           time.Time
}

// New checks cfg and returns the server, which does nothing until Run. It builds the chain of filters once; a request
// only walks it.
func New(cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Server{Config: cfg, began: time.Now(), limits: inflight.New(cfg.MaxReading, cfg.MaxMutating, limitPatience),
		bodies:    inflight.NewBodies(limitPatience),
		receiving: inflight.NewShares(maxReceiving, maxUserReceiving, slowBody),
		streams:   inflight.NewShares(maxStreams, maxUserStreams, 0)}
	inFlight := s.limits.InFlight
	if cfg.Fairness != nil {
		inFlight = cfg.Fairness.InFlight
		if err := cfg.Metrics.Register(cfg.Fairness); err != nil {
			return nil, fmt.Errorf("metrics of priority and fairness: %w", err)
		}
	}
	s.requests = metrics.New(cfg.Metrics, inFlight, cfg.API.Deprecated)
	s.authentications = authn.NewAttempts(cfg.Metrics)
	s.authorizations = authz.NewAttempts(cfg.Metrics)
	s.impersonation = impersonation.New(cfg.Authorizer, cfg.Metrics, time.Now)
	s.handler = s.chain(s.router())
	return s, nil
}

// Limits of the HTTP server. A request's body must have come, and its answer have been taken, lateAfter its deadline:
// time enough to say that it passed. A connection on which nothing can be written for writeByteTimeout is closed.
const (
	readHeaderTimeout = 32 * time.Second
	idleTimeout       = 3 * time.Minute
	lateAfter         = 5 * time.Second
	writeByteTimeout  = time.Minute
	maxHeaderBytes    = 1 << 20
	// Connections without an authenticated request: how many there may be, and how much they may have sent together, in
	// bytes.
	maxUnauthenticated      = 2000
	maxUnauthenticatedBytes = 8 << 20
	// An HTTP/2 client may send so much ahead of what is read, in bytes, on one stream and on all streams of a
	// connection.
	streamWindow     = 256 << 10
	connectionWindow = 1 << 20
)

// Run serves until ctx ends. Then /readyz fails, watches and streams end, and other requests get ShutdownTimeout.
//
// The order of the end: /readyz fails for ShutdownDelay, so that load balancers stop sending; with SendRetryAfter, new
// requests are refused until the earlier ones have their answers; then streams end, with WatchGrace after watches have
// ended one by one, and the listener closes; then requests under way get ShutdownTimeout; the audit log is flushed
// last. Contexts nest accordingly: requests live until cutOff, streams until endStreams.
func (s *Server) Run(ctx context.Context) error {
	requests, cutOff := context.WithCancel(context.WithoutCancel(ctx))
	defer cutOff()
	stopping := make(chan struct{})
	serving, endStreams := context.WithCancel(context.WithValue(requests, lifeKey{}, life{stopping, requests.Done()}))
	defer endStreams()
	server := &http.Server{
		Handler:           s,
		TLSConfig:         s.TLS.Clone(),
		ReadHeaderTimeout: readHeaderTimeout,
		// These are deadlines for a whole request over HTTP/1. Streams replace them by deadlines for each piece
		// (slowclient).
		ReadTimeout:    s.RequestTimeout + lateAfter,
		WriteTimeout:   s.RequestTimeout + lateAfter,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: s.MaxStreams, WriteByteTimeout: writeByteTimeout,
			MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connectionWindow},
		ConnContext: connlimit.ConnContext,
		ConnState:   connlimit.ConnState,
		BaseContext: func(net.Listener) context.Context { return serving },
		// What net/http logs are faults of clients, such as failed handshakes. Everybody can cause them, so they are
		// debug messages.
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	if len(server.TLSConfig.NextProtos) == 0 {
		server.TLSConfig.NextProtos = []string{"h2", "http/1.1"}
	}
	defer s.runAudit(ctx)()
	unauthenticated := connlimit.NewUntrusted(connlimit.UntrustedConfig{Most: maxUnauthenticated,
		Bytes: maxUnauthenticatedBytes})
	failed := make(chan error, 1)
	go func() {
		failed <- server.Serve(shakeHands(serving, unauthenticated.Listener(s.Listener), server.TLSConfig,
			readHeaderTimeout))
	}()
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
	if s.SendRetryAfter {
		s.answerTheRest(s.RequestTimeout + lateAfter)
	}
	close(stopping)
	if s.WatchGrace <= 0 {
		endStreams()
	} else {
		go func() {
			s.endWatches(serving, s.WatchGrace)
			endStreams()
		}()
	}
	err := s.drain(context.WithoutCancel(ctx), server, s.WatchGrace+s.ShutdownTimeout)
	<-failed
	return err
}

// ServeHTTP serves one request, and counts it as under way for as long.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.underWay.Add(1)
	defer s.underWay.Add(-1)
	s.handler(w, r)
}

// How long drain looks for the end of the requests under way, and what it then leaves their last bytes to reach the
// clients.
const (
	drainPoll = 5 * time.Millisecond
	drainLast = 50 * time.Millisecond
)

// drain ends the server's connections. It closes the listener, tells HTTP/2 clients to go away, and closes the
// connections when nothing is under way any more, or after timeout. It does not wait for clients to close, because
// Shutdown gives each HTTP/2 client a second.
func (s *Server) drain(ctx context.Context, server *http.Server, timeout time.Duration) error {
	end := time.NewTimer(timeout)
	defer end.Stop()
	poll := time.NewTicker(drainPoll)
	defer poll.Stop()
	grace, closed := context.WithCancel(ctx)
	defer closed()
	stopped := make(chan error, 1)
	go func() { stopped <- server.Shutdown(grace) }()
	var idle time.Time
	for {
		select {
		case err := <-stopped:
			return err
		case <-end.C:
			s.Log.Warn("requests were cut off", "count", s.underWay.Load(), "timeout", timeout)
		// The counter says only that handlers have returned. Their last bytes may still be in buffers, so drain waits
		// for drainLast without a new request.
		case now := <-poll.C:
			if s.underWay.Load() > 0 {
				idle = time.Time{}
				continue
			}
			if idle.IsZero() {
				idle = now
			}
			if now.Sub(idle) < drainLast {
				continue
			}
		}
		closed()
		if err := <-stopped; err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return server.Close()
	}
}
