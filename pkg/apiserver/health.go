package apiserver

import (
	"errors"
	"maps"
	"net/http"
	"slices"

	"bonsai/pkg/health"
)

// addHealth adds /healthz, /livez and /readyz, each with one path per check below it, and /metrics/slis.
func (s *Server) addHealth(paths map[string]http.Handler) {
	log := health.Check{Name: "log", Run: func(*http.Request) error { return nil }} // records are written at once: none can be stuck
	stopping := health.Check{Name: "shutdown", Run: func(*http.Request) error {
		if s.stopping.Load() {
			return errors.New("process is shutting down")
		}
		return nil
	}}
	live := append([]health.Check{health.Ping(), log}, s.Live...)
	endpoints := health.New(s.Log)
	for name, checks := range map[string][]health.Check{
		"livez": live, "healthz": slices.Concat(live, s.Ready), "readyz": slices.Concat(live, s.Ready, []health.Check{stopping}),
	} {
		maps.Copy(paths, endpoints.Paths(name, checks))
	}
	paths["/metrics/slis"] = endpoints.SLIs()
}
