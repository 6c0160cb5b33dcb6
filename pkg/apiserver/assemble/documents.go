package assemble

import (
	"maps"
	"net/http"

	"bonsai/pkg/apiserver/discovery"
)

// documents answer for the paths they know and report whether they did.
type documents interface {
	Serve(w http.ResponseWriter, r *http.Request) (bool, error)
}

// paths are those that are no resources: of the parts, and the documents that describe the API.
func (s *Server) paths(groups *discovery.Discovery, described schemas) map[string]http.Handler {
	out := maps.Clone(s.cfg.HTTP.Paths)
	if out == nil {
		out = map[string]http.Handler{}
	}
	maps.Copy(out, s.cfg.Parts.Paths)
	if f := s.cfg.Parts.Fairness; f != nil {
		maps.Copy(out, f.Paths())
	}
	s.addDocuments(out, groups, "/api", "/api/", "/apis", "/apis/")
	s.addDocuments(out, described, "/openapi/v2", "/openapi/v3", "/openapi/v3/")
	return out
}

// addDocuments serves d on paths, which end in "/" for all below them.
func (s *Server) addDocuments(to map[string]http.Handler, d documents, paths ...string) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ok, err := d.Serve(w, r)
		switch {
		case err != nil:
			s.api.WriteError(w, r, err)
		case !ok:
			http.NotFound(w, r)
		}
	})
	for _, p := range paths {
		to[p] = h
	}
}
