package apiserver

import (
	"net/http/httptest"
	"testing"
	"time"

	"bonsai/pkg/apiserver/request"
)

// elsewhere serves the group ext.
type elsewhere struct{ Aggregated }

func (elsewhere) Serves(info *request.Info) bool { return info.APIGroup == "ext" }

// Kubernetes ends a request that changes something after 34 s, whatever it asks for: a create under a hundred costly
// policies was answered 504 then.
func TestTimeout(t *testing.T) {
	t.Parallel()
	s := &Server{Config: Config{RequestTimeout: time.Minute, Aggregated: elsewhere{}}}
	for _, c := range []struct {
		info  request.Info
		query string
		want  time.Duration
	}{
		{request.Info{IsResource: true, Verb: "get"}, "", time.Minute},
		{request.Info{IsResource: true, Verb: "list"}, "?timeout=90s", time.Minute},
		{request.Info{IsResource: true, Verb: "create"}, "", 34 * time.Second},
		{request.Info{IsResource: true, Verb: "update"}, "?timeout=50s", 34 * time.Second},
		{request.Info{IsResource: true, Verb: "patch"}, "?timeout=5s", 5 * time.Second},
		{request.Info{IsResource: true, Verb: "deletecollection"}, "?timeout=0s", 34 * time.Second},
		{request.Info{IsResource: true, Verb: "create", APIGroup: "ext"}, "", time.Minute},
		{request.Info{Verb: "create"}, "", time.Minute},
	} {
		r := httptest.NewRequest("GET", "/"+c.query, nil)
		r = r.WithContext(request.WithInfo(r.Context(), &c.info))
		if got, err := s.timeout(r); err != nil || got != c.want {
			t.Errorf("%s %s%s: %v, %v", c.info.Verb, c.info.APIGroup, c.query, got, err)
		}
	}
}
