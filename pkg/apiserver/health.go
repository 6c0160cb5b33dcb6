package apiserver

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"bonsai/pkg/health"
)

// addHealth adds /healthz, /livez and /readyz, each with one path per check below it, and /metrics/slis. Only /readyz
// fails while the server shuts down: it takes the server out of load balancers, while a failing /livez would have it
// restarted.
func (s *Server) addHealth(paths map[string]http.Handler) {
	// records are written at once: none can be stuck
	log := health.Check{Name: "log", Run: func(*http.Request) error { return nil }}
	stopping := health.Check{Name: "shutdown", Run: func(*http.Request) error {
		if s.stopping.Load() {
			return errors.New("process is shutting down")
		}
		return nil
	}}
	// The server reaches itself without TLS: it has no loopback certificate that could expire.
	loopback := health.Check{Name: "loopback-serving-certificate", Run: func(*http.Request) error { return nil }}
	first := []health.Check{health.Ping(), log}
	live := slices.Concat(first, []health.Check{loopback}, s.Live, s.presumed(s.Started))
	endpoints := health.New(s.Log)
	for name, checks := range map[string][]health.Check{
		"livez": live, "healthz": slices.Concat(first, []health.Check{loopback}, s.Live, s.Useful, s.Started),
		"readyz": slices.Concat(first, s.Live, s.Useful, s.Ready, s.Started, []health.Check{stopping}),
	} {
		maps.Copy(paths, endpoints.Paths(name, checks))
	}
	paths["/metrics/slis"] = endpoints.SLIs()
}

// presumed are checks that pass for LivezGrace after the start, whatever they find: what has not ended yet is taken to
// end well.
func (s *Server) presumed(checks []health.Check) []health.Check {
	if s.LivezGrace <= 0 {
		return checks
	}
	out := make([]health.Check, len(checks))
	for i, c := range checks {
		out[i] = health.Check{Name: c.Name, Run: func(r *http.Request) error {
			if err := c.Run(r); err != nil && time.Since(s.began) >= s.LivezGrace {
				return err
			}
			return nil
		}}
	}
	return out
}
