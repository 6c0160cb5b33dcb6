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
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/proxy/iptables"
)

// health is what load balancers and people ask the proxy: whether rules are written, and how fast.
type health struct {
	grace   time.Duration
	leaving func() bool
	now     func() time.Time
	took    prometheus.Histogram
	synced  prometheus.Gauge
	failed  prometheus.Counter
	mode    string
	rules   *ruleMetrics // of the iptables mode; else nil

	mu      sync.Mutex
	last    time.Time // of a success; zero before the first
	pending time.Time // since when something waits to be written; zero while nothing does
}

// newHealth returns a health that forgives rounds that fail or do not end for twice the resync period.
func newHealth(mode string, resync time.Duration, leaving func() bool, now func() time.Time) *health {
	h := &health{
		mode: mode, grace: 2 * resync, leaving: leaving, now: now,
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kubeproxy_sync_proxy_rules_duration_seconds", Help: "SyncProxyRules latency in seconds",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}),
		synced: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubeproxy_sync_proxy_rules_last_timestamp_seconds", Help: "The last time proxy rules were successfully synced"}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{Name: "kubeproxy_sync_proxy_rules_nftables_sync_failures_total", Help: "Cumulative proxy nftables sync failures"}),
	}
	if mode == modeIPTables {
		h.rules = newRuleMetrics()
	}
	return h
}

// restored hears of a round of the iptables mode.
func (h *health) restored(r iptables.Round) { h.rules.observe(r) }

// metrics are those of the mode.
func (h *health) metrics() []prometheus.Collector {
	all := []prometheus.Collector{h.took, h.synced}
	if h.rules != nil {
		return append(all, h.rules.all()...)
	}
	return append(all, h.failed)
}

// begin notes that a round begins.
func (h *health) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pending.IsZero() {
		h.pending = h.now()
	}
}

// done notes how a round ended. Services that were refused count as a failure, but they do not make the node unhealthy: nobody
// may take it from the load balancers of all others by a service of his own.
func (h *health) done(took time.Duration, refused int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.took.Observe(took.Seconds())
	if err != nil || refused > 0 {
		h.failed.Inc()
	}
	if err != nil {
		return
	}
	now := h.now()
	h.last, h.pending = now, time.Time{}
	h.synced.Set(float64(now.Unix()))
}

// alive is set once rules were written and nothing waits for long.
func (h *health) alive() (last, now time.Time, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now = h.now()
	return h.last, now, !h.last.IsZero() && (h.pending.IsZero() || now.Sub(h.pending) < h.grace)
}

// ok is alive without the times.
func (h *health) ok() bool {
	_, _, ok := h.alive()
	return ok
}

// answer is upstream's body: lastUpdated is the current time while nothing is pending, as upstream has it.
type answer struct {
	LastUpdated string `json:"lastUpdated"`
	CurrentTime string `json:"currentTime"`
	Eligible    *bool  `json:"nodeEligible,omitempty"`
}

// ServeHTTP answers /healthz, which also says no while the node is being deleted, and /livez, which does not.
func (h *health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	last, now, ok := h.alive()
	body := answer{LastUpdated: last.String(), CurrentTime: now.String()}
	if ok {
		body.LastUpdated = body.CurrentTime
	}
	if r.URL.Path == "/healthz" {
		eligible := !h.leaving()
		body.Eligible = &eligible
		ok = ok && eligible
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
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

// serveMetrics serves /metrics, /healthz, /proxyMode and profiles on address until ctx ends.
func serveMetrics(ctx context.Context, address string, h *health, profiles map[string]http.Handler, log *slog.Logger) error {
	if address == "" {
		<-ctx.Done()
		return ctx.Err()
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("--metrics-bind-address %q: %w", address, err)
	}
	registry := daemon.NewMetrics()
	registry.MustRegister(h.metrics()...)
	server := &daemon.Server{
		Address: at.Addr().String(), Port: int(at.Port()), Insecure: true, Registry: registry, Log: log,
		Ready: []daemon.Check{{Name: "rules", Run: func() error {
			if !h.ok() {
				return errors.New("the rules are not written")
			}
			return nil
		}}},
		Extra: map[string]http.Handler{"/proxyMode": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, h.mode) })},
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
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(grace)
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", address, err)
	}
	return ctx.Err()
}
