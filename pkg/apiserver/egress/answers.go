package egress

import (
	"net/http"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Answers is a transport to servers that requests are handed on to. It takes from their answers what this server says
// of a request itself: its Audit-Id, and which flow it belongs to. A proxy would add the other server's to those, and
// clients would not know which to believe.
type Answers struct{ *http.Transport }

var _ utilnet.RoundTripperWrapper = Answers{}

// RoundTrip implements http.RoundTripper.
func (a Answers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	for name := range resp.Header {
		if name == "Audit-Id" || strings.HasPrefix(name, "X-Kubernetes-Pf-") {
			delete(resp.Header, name)
		}
	}
	return resp, nil
}

// WrappedRoundTripper lets proxies find out how connections that are taken over are opened.
func (a Answers) WrappedRoundTripper() http.RoundTripper { return a.Transport }
