package webhook

import (
	"cmp"
	"net/http"
)

// balanced sends each call to the endpoint of a Service that the Resolver names first, and keeps connections by
// endpoint. Idle connections would otherwise decide: calls go over the one that was used last, so that one endpoint
// answers nearly all of them, also when others have come. The Service's name stays what the certificate is for.
type balanced struct {
	resolver Resolver
	service  *Service
	next     *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (b balanced) RoundTrip(r *http.Request) (*http.Response, error) {
	addrs, err := b.resolver.Resolve(r.Context(), b.service.Namespace, b.service.Name, b.service.port())
	if err != nil {
		if r.Body != nil {
			r.Body.Close() //nolint:errcheck // nothing of it is sent
		}
		return nil, err
	}
	to := r.Clone(r.Context())
	to.Host = cmp.Or(r.Host, r.URL.Host)
	to.URL.Host = addrs[0]
	return b.next.RoundTrip(to)
}

// CloseIdleConnections lets http.Client close them.
func (b balanced) CloseIdleConnections() { b.next.CloseIdleConnections() }
