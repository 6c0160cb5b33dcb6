package console

import (
	"net/http"
	"net/http/httputil"

	"bonsai/pkg/safetext"
)

// proxy passes requests to the API server. The user's credentials are the transport's: what the browser sends of its
// own
// does not reach the API server, so that a page cannot act as somebody else than the kubeconfig says.
func (s *server) proxy() http.Handler {
	return &httputil.ReverseProxy{
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
		ModifyResponse: func(r *http.Response) error {
			// Cookies and redirects are none of the browser's business: it talks to this server alone.
			for _, name := range []string{"Set-Cookie", "Location", "Content-Security-Policy"} {
				r.Header.Del(name)
			}
			r.Header.Set("Cache-Control", "no-store")
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return // the browser has gone
			}
			s.Log.Warn("the API server does not answer", "path", r.URL.Path, "err", safetext.Error(err))
			http.Error(w, "The API server does not answer: "+safetext.Message(err.Error()), http.StatusBadGateway)
		},
	}
}
