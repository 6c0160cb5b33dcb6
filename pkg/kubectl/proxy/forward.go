package proxy

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"

	"k8s.io/client-go/rest"
)

// newForwarder sends requests on to base with the user's credentials. Watches and logs flow as they come; a connection
// that is upgraded (exec, port-forward) needs HTTP/1.1, everything else may share an HTTP/2 connection.
func newForwarder(base *url.URL, config *rest.Config) (http.Handler, error) {
	shared, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	single := rest.CopyConfig(config)
	single.NextProtos = []string{"http/1.1"}
	upgraded, err := rest.TransportFor(single)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(base)
			// Who asks is decided by the user's configuration, not by a page that reached this port.
			r.Out.Header.Del("Authorization")
		},
		Transport: byUpgrade{shared: shared, upgraded: upgraded},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}, nil
}

type byUpgrade struct{ shared, upgraded http.RoundTripper }

func (t byUpgrade) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Upgrade") != "" {
		return t.upgraded.RoundTrip(r)
	}
	return t.shared.RoundTrip(r)
}
