package apiserver

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
)

// router sends resource requests to the API and every other path to its handler.
//
// The order matters: the aggregator comes first, because its API groups look like resources. The API comes next, and
// everything else is a path. Paths are fixed at the start; only the resources change while the server runs.
func (s *Server) router() http.HandlerFunc {
	mux := http.NewServeMux()
	paths := map[string]http.Handler{
		"/metrics": promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{}),
		"/version": s.onlyGet(s.version()),
	}
	s.addHealth(paths)
	for p, h := range s.Paths {
		if isDocument(p) {
			h = s.onlyGet(h)
		}
		paths[p] = h
	}
	list := make([]string, 0, len(paths))
	for p, h := range paths {
		mux.Handle(p, h)
		list = append(list, strings.TrimSuffix(p, "/"))
	}
	slices.Sort(list)
	mux.Handle("/version/{$}", paths["/version"])
	mux.Handle("/{$}", index(slices.Compact(list)))
	return func(w http.ResponseWriter, r *http.Request) {
		info := request.InfoFrom(r.Context())
		if s.Aggregated != nil && s.Aggregated.Proxy(w, r, rest.LongRunning(info)) {
			return
		}
		if info.IsResource {
			s.API.ServeHTTP(w, r)
			return
		}
		if strings.Contains(r.URL.Path, "//") { // not a path of this server, and not to be redirected to one
			http.NotFound(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}
}

// index lists the paths of the server. It is made once, because the paths do not change.
func index(paths []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writePlainJSON(w, map[string][]string{"paths": paths})
	})
}

func (s *Server) version() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writePlainJSON(w, s.Version) })
}

// isDocument reports whether a path beside the resources is a document that is only ever read: discovery and OpenID.
func isDocument(path string) bool {
	for _, prefix := range []string{"/api", "/.well-known/", "/openid/"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// onlyGet refuses all other methods, HEAD too, except for the list of groups and single groups: upstream answers any
// method there as it answers GET.
func (s *Server) onlyGet(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && !isGroupDocument(r.URL.Path) {
			s.API.WriteError(w, r, rest.ErrMethod())
			return
		}
		h.ServeHTTP(w, r)
	})
}

// isGroupDocument reports whether path is /apis or /apis/GROUP.
func isGroupDocument(path string) bool {
	group, below := strings.CutPrefix(strings.TrimSuffix(path, "/"), "/apis/")
	return path == "/apis" || path == "/apis/" || below && !strings.Contains(group, "/")
}

func writePlainJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // only fails for a client that has gone
}
