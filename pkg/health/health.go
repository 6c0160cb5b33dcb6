// Package health answers for the health of a component as all components of Kubernetes do: /healthz, /livez and /readyz
// name its checks, and /metrics/slis counts how they came out.
package health

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check is a named health check; nil means healthy.
type Check struct {
	Name string
	Run  func(r *http.Request) error
}

// Ping is the check that fails only where nobody answers.
func Ping() Check {
	return Check{Name: "ping", Run: func(*http.Request) error { return nil }}
}

// Endpoints answers on the paths of health, and keeps the service level indicators of their checks. Its methods may be
// used at the same time.
type Endpoints struct {
	log      *slog.Logger
	registry *prometheus.Registry
	last     *prometheus.GaugeVec
	results  *prometheus.CounterVec
}

// New returns endpoints whose indicators are empty until the first check. Why a check failed goes to log only.
func New(log *slog.Logger) *Endpoints {
	e := &Endpoints{
		log: log, registry: prometheus.NewRegistry(),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubernetes_healthcheck",
			Help: "The last result of one health check: 1 is success, 0 is not."}, []string{"name", "type"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubernetes_healthchecks_total",
			Help: "The results of all health checks."}, []string{"name", "status", "type"}),
	}
	e.registry.MustRegister(e.last, e.results)
	return e
}

// SLIs serves /metrics/slis.
func (e *Endpoints) SLIs() http.Handler {
	return promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{})
}

// Paths are the handlers of /NAME, which makes all checks, and of /NAME/CHECK for each alone. NAME is healthz, livez or
// readyz.
func (e *Endpoints) Paths(name string, checks []Check) map[string]http.Handler {
	paths := map[string]http.Handler{"/" + name: e.handler(name, checks)}
	for _, c := range checks {
		paths["/"+name+"/"+c.Name] = e.handler(name, []Check{c})
	}
	return paths
}

// handler answers "ok", or with ?verbose and on failure one line per check. ?exclude=CHECK leaves one out. Reasons are
// not told: anybody may ask.
func (e *Endpoints) handler(name string, checks []Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		exclude := query["exclude"]
		var lines strings.Builder
		failed := false
		results := runAll(r, checks, exclude)
		for i, c := range checks {
			if slices.Contains(exclude, c.Name) {
				fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.Name)
				continue
			}
			err := results[i]
			e.observe(c.Name, name, err)
			if err != nil {
				failed = true
				e.log.Debug("health check failed", "endpoint", name, "check", c.Name, "err", err)
				fmt.Fprintf(&lines, "[-]%s failed: reason withheld\n", c.Name)
				continue
			}
			fmt.Fprintf(&lines, "[+]%s ok\n", c.Name)
		}
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
		_, verbose := query["verbose"]
		switch {
		case failed:
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "%s%s check failed\n", lines.String(), name)
		case verbose:
			fmt.Fprintf(w, "%s%s check passed\n", lines.String(), name)
		default:
			_, _ = io.WriteString(w, "ok") // only fails for a client that has gone
		}
	})
}

// runAll makes the checks that are not excluded at the same time, so that the answer takes as long as the slowest one,
// and returns how each came out.
func runAll(r *http.Request, checks []Check, exclude []string) []error {
	results := make([]error, len(checks))
	var all sync.WaitGroup
	for i, c := range checks {
		if !slices.Contains(exclude, c.Name) {
			all.Go(func() { results[i] = c.Run(r) })
		}
	}
	all.Wait()
	return results
}

// observe counts one result.
func (e *Endpoints) observe(check, endpoint string, err error) {
	value, status := 1.0, "success"
	if err != nil {
		value, status = 0, "error"
	}
	e.last.WithLabelValues(check, endpoint).Set(value)
	e.results.WithLabelValues(check, status, endpoint).Inc()
}
