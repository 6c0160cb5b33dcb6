package console

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"

	"bonsai/pkg/safetext"
)

// proxy passes requests to the API server. The user's credentials are the transport's: what the browser sends of its
// own
// does not reach the API server, so that a page cannot act as somebody else than the kubeconfig says.
//
// Only the methods of the API pass, and no path that leads out of it: an address with a path of its own, as of a server
// that stands before many clusters, has other things beside the cluster.
func (s *server) proxy() http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(s.Upstream)
			p.Out.Host = s.Upstream.Host
			kept := http.Header{}
			for _, name := range []string{"Accept", "Content-Type"} {
				if v := p.In.Header.Get(name); v != "" {
					kept.Set(name, v)
				}
			}
			p.Out.Header = kept
		},
		Transport:     s.Transport,
		FlushInterval: -1, // watches show each event at once
		ErrorLog:      slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
		ModifyResponse: func(r *http.Response) error {
			// What else an API server or a pod behind it says to a browser would steer the page: cookies, redirects, a
			// question for a password (WWW-Authenticate), other sites that may read this one. The page reads
			// these alone.
			kept := http.Header{}
			for _, name := range []string{"Content-Type", "Content-Length", "Retry-After", "Warning"} {
				if v := r.Header.Values(name); len(v) > 0 {
					kept[name] = v
				}
			}
			r.Header, r.Trailer = kept, nil
			if goesOn(r.Request.URL) {
				return nil
			}
			return bounded(r)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return // the browser has gone
			}
			if tooLarge(err) {
				http.Error(w, "The API server's answer is too large to show: "+err.Error()+".", http.StatusBadGateway)
				return
			}
			s.Log.Warn("the API server does not answer", "path", safetext.Text(r.URL.Path), "err", safetext.Error(err))
			http.Error(w, "The API server does not answer: "+safetext.Message(err.Error()), http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		default:
			http.Error(w, "This method is none of the API's.", http.StatusMethodNotAllowed)
			return
		}
		if climbs(r.URL.Path) {
			http.Error(w, "This path is none of the API's.", http.StatusBadRequest)
			return
		}
		proxy.ServeHTTP(final{w}, r)
	})
}

// climbs reports whether a decoded path has a part that leads up: %2e%2e is one, too.
func climbs(path string) bool {
	return slices.Contains(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }), "..")
}

// final writes final answers alone. Early ones (1xx) would have headers of the API server, and take those of this
// server away from the answer that follows.
type final struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (f final) WriteHeader(code int) {
	if code < http.StatusOK {
		return
	}
	secure(f.Header())
	f.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController, which flushes.
func (f final) Unwrap() http.ResponseWriter { return f.ResponseWriter }
