package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/connlimit"
	"bonsai/pkg/zpages"
)

// families are the names of address families in metrics and answers, in the order of the backends.
var families = [...]string{"IPv4", "IPv6"}

// familyName returns the name of a family.
func familyName(six bool) string {
	if six {
		return families[1]
	}
	return families[0]
}

// health answers load balancers and people: whether the rules of each family are written. A node that fails is taken
// out of load balancers, so it may only fail if it really cannot serve.
type health struct {
	grace   time.Duration
	leaving func() bool
	now     func() time.Time
	metrics *metrics

	mu     sync.Mutex
	rounds []rounds // by family
}

// rounds are the times of a family's rounds.
type rounds struct {
	last    time.Time // of a success; zero before the first
	pending time.Time // since when something waits to be written; zero while nothing does
}

// newHealth returns the health of n families. It tolerates rounds that fail or do not end for twice the resync period.
func newHealth(n int, resync time.Duration, m *metrics, leaving func() bool, now func() time.Time) *health {
	return &health{grace: 2 * resync, leaving: leaving, now: now, metrics: m, rounds: make([]rounds, n)}
}

// begin records that a round of a family begins.
func (h *health) begin(i int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := &h.rounds[i]; r.pending.IsZero() {
		r.pending = h.now()
	}
}

// done records how a round ended. Refused services count as a failure, but do not make the node unhealthy: a user must
// not be able to take the node out of everyone's load balancers with a service of their own.
func (h *health) done(i int, took time.Duration, refused int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	h.metrics.done(families[i], took, now, err == nil, refused)
	if err == nil {
		h.rounds[i] = rounds{last: now}
	}
}

// written reports whether the latest round of a family succeeded, with nothing left.
func (h *health) written(six bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.Index(families[:], familyName(six))
	return i < len(h.rounds) && h.rounds[i].pending.IsZero() && !h.rounds[i].last.IsZero()
}

// family is the health of one IP family.
type family struct {
	LastUpdated time.Time `json:"lastUpdated"`
	Healthy     bool      `json:"healthy"`
}

// answer is upstream's body: lastUpdated is the current time while nothing is pending, as upstream has it.
type answer struct {
	LastUpdated time.Time         `json:"lastUpdated"`
	CurrentTime time.Time         `json:"currentTime"`
	Eligible    *bool             `json:"nodeEligible,omitempty"`
	Healthy     bool              `json:"healthy"`
	Status      map[string]family `json:"status"`
}

// answer returns the answer: healthy once the rules of all families were written and nothing has waited for long.
func (h *health) answer() answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now().UTC()
	out := answer{CurrentTime: now, Healthy: true, Status: map[string]family{}}
	for i, r := range h.rounds {
		f := family{LastUpdated: r.last.UTC(),
			Healthy: !r.last.IsZero() && (r.pending.IsZero() || now.Sub(r.pending) < h.grace)}
		out.Status[families[i]] = f
		out.Healthy = out.Healthy && f.Healthy
		if f.LastUpdated.After(out.LastUpdated) {
			out.LastUpdated = f.LastUpdated
		}
	}
	if out.Healthy {
		out.LastUpdated = now
	}
	return out
}

// ok reports whether the answer is healthy.
func (h *health) ok() bool { return h.answer().Healthy }

// ServeHTTP answers /healthz and /livez. /healthz also fails while the node is being deleted, so that load balancers
// drain it; /livez does not, because a restart of the proxy would not help.
func (h *health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, asked := h.answer(), h.metrics.livez
	if r.URL.Path == "/healthz" {
		eligible := !h.leaving()
		body.Eligible = &eligible
		body.Healthy = body.Healthy && eligible
		asked = h.metrics.healthz
	}
	code := http.StatusOK
	if !body.Healthy {
		code = http.StatusServiceUnavailable
	}
	asked.WithLabelValues(strconv.Itoa(code)).Inc()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	// A failed write means that the client is gone.
	_ = json.NewEncoder(w).Encode(body)
}

// serveHealth serves /healthz and /livez on address until ctx ends.
func serveHealth(ctx context.Context, address string, h *health, log *slog.Logger) error {
	mux := http.NewServeMux()
	mux.Handle("/healthz", h)
	mux.Handle("/livez", h)
	return serve(ctx, address, mux, log)
}

// serveMetrics serves /metrics, /healthz, /proxyMode, pages and profiles on address until ctx ends.
func serveMetrics(ctx context.Context, address string, h *health, pages *zpages.Config,
	profiles map[string]http.Handler, registry *prometheus.Registry, log *slog.Logger) error {
	if address == "" {
		<-ctx.Done()
		return ctx.Err()
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("--metrics-bind-address %q: %w", address, err)
	}
	server := &daemon.Server{
		Listener: daemon.Listener{Address: at.Addr().String(), Port: int(at.Port())},
		Insecure: true, Registry: registry, Pages: pages, Log: log,
		Ready: []daemon.Check{{Name: "rules", Run: func() error {
			if !h.ok() {
				return errors.New("the rules are not written")
			}
			return nil
		}}},
		Extra: map[string]http.Handler{"/proxyMode": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, h.metrics.mode)
		})},
	}
	maps.Copy(server.Extra, profiles)
	return server.Run(ctx)
}

// serve answers on address until ctx ends; requests under way get a second.
func serve(ctx context.Context, address string, handler http.Handler, log *slog.Logger) error {
	if address == "" {
		<-ctx.Done()
		return ctx.Err()
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	limit := connlimit.NewUntrusted(connlimit.UntrustedConfig{Most: maxConnections, Bytes: maxReceived})
	return serveOn(ctx, listener, limit, handler, log)
}

// Bounds of the port for health: connections, and bytes of unanswered requests on all of them. Every pod reaches the
// port, and no client has to prove anything. Load balancers hold a few connections, and have their answers within
// milliseconds.
const (
	maxConnections = 256
	maxReceived    = 512 << 10
)

// serveOn is serve on a listener with a bound of its connections. It closes the listener.
func serveOn(ctx context.Context, listener net.Listener, limit *connlimit.Untrusted, handler http.Handler,
	log *slog.Logger) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: 10 * time.Second,
		IdleTimeout:  time.Minute, MaxHeaderBytes: 16 << 10, ConnState: connlimit.ConnState,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(grace)
	})
	defer stop()
	if err := server.Serve(limit.Listener(listener)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	}
	return ctx.Err()
}
