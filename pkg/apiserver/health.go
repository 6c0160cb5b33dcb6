package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// addHealth adds /healthz, /livez and /readyz, each with one path per check below it.
func (s *Server) addHealth(paths map[string]http.Handler) {
	ping := Check{Name: "ping", Run: func(*http.Request) error { return nil }}
	stopping := Check{Name: "shutdown", Run: func(*http.Request) error {
		if s.stopping.Load() {
			return errors.New("process is shutting down")
		}
		return nil
	}}
	live := append([]Check{ping}, s.Live...)
	ready := slices.Concat(live, s.Ready, []Check{stopping})
	for name, checks := range map[string][]Check{"livez": live, "healthz": slices.Concat(live, s.Ready), "readyz": ready} {
		paths["/"+name] = s.health(name, checks)
		for _, c := range checks {
			paths["/"+name+"/"+c.Name] = s.health(name, []Check{c})
		}
	}
}

// health answers "ok", or with ?verbose and on failure one line per check. ?exclude=<check> leaves one out. Reasons go to the
// log only.
func (s *Server) health(name string, checks []Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		exclude := query["exclude"]
		var lines strings.Builder
		var failed []string
		for _, c := range checks {
			if slices.Contains(exclude, c.Name) {
				fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.Name)
				continue
			}
			if err := c.Run(r); err != nil {
				failed = append(failed, c.Name)
				s.Log.Debug("health check failed", "endpoint", name, "check", c.Name, "error", err)
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
		case len(failed) > 0:
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "%s%s check failed\n", lines.String(), name)
		case verbose:
			fmt.Fprintf(w, "%s%s check passed\n", lines.String(), name)
		default:
			fmt.Fprint(w, "ok")
		}
	})
}
