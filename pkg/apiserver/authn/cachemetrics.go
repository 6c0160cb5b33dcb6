package authn

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/resultmetrics"
)

// CacheMetrics counts what the caches of tokens are asked, under upstream's names. A nil *CacheMetrics counts nothing.
//
// There is a cache for each kind of tokens, and they are asked one after the other. A token counts where it is known,
// or refused as one of the kind: so most requests count once, as with upstream's one cache.
type CacheMetrics struct {
	inFlight     prometheus.Gauge
	hits, misses resultmetrics.Result
	good, failed prometheus.Counter
}

// NewCacheMetrics registers at r; nil: nothing is counted.
func NewCacheMetrics(r prometheus.Registerer) *CacheMetrics {
	if r == nil {
		return nil
	}
	const prefix = "authentication_token_cache_"
	status := []string{"status"}
	active := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "active_fetch_count",
		Help: "[ALPHA] Tokens that are being checked because no cache has them ('in_flight'). None waits for another ('blocked')."}, status)
	fetches := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "fetch_total",
		Help: "[ALPHA] Checks of tokens that no cache had, by their end: 'ok' or 'error'."}, status)
	r.MustRegister(active, fetches)
	active.WithLabelValues("blocked").Set(0)
	of := resultmetrics.New(r, "status",
		prometheus.CounterOpts{Name: prefix + "request_total",
			Help: "[ALPHA] Requests for a token, by whether a cache had it: 'hit' or 'miss'."},
		prometheus.HistogramOpts{Name: prefix + "request_duration_seconds",
			Help: "[ALPHA] Time in seconds that requests for a token took, by whether a cache had it: 'hit' or 'miss'."})
	return &CacheMetrics{inFlight: active.WithLabelValues("in_flight"), hits: of("hit"), misses: of("miss"),
		good: fetches.WithLabelValues("ok"), failed: fetches.WithLabelValues("error")}
}

// hit counts a token that the cache had.
func (m *CacheMetrics) hit(took time.Duration) {
	if m != nil {
		m.hits.Observe(took)
	}
}

// fetch says that a token is being checked. The function that it returns says how that ended; own is true for a token
// of the cache's kind.
func (m *CacheMetrics) fetch() func(own bool, err error, took time.Duration) {
	if m == nil {
		return func(bool, error, time.Duration) {}
	}
	m.inFlight.Inc()
	return func(own bool, err error, took time.Duration) {
		m.inFlight.Dec()
		if !own {
			return
		}
		m.misses.Observe(took)
		if err != nil {
			m.failed.Inc()
		} else {
			m.good.Inc()
		}
	}
}
