package aggregator

import (
	"net/http"
	"strings"

	"k8s.io/client-go/transport"

	"bonsai/pkg/apiserver/request"
)

// identify says in the request's headers who asks, and takes away everything else in them that could say so: what the
// client sent under the names that servers behind this one believe, in any spelling that some server takes for the same
// (CGI makes "-" and "_" one), and what is for this server alone.
func (a *Aggregator) identify(r *http.Request, user *request.User) {
	for name := range r.Header {
		if a.names(name) {
			delete(r.Header, name)
		}
	}
	r.Header.Del("Authorization")
	transport.SetAuthProxyHeaders(r, user.Name, user.UID, user.Groups, user.Extra)
}

// names reports whether a header is one that says who asks.
func (a *Aggregator) names(header string) bool {
	header = spelled(header)
	if strings.HasPrefix(header, "x-remote-") || strings.HasPrefix(header, "impersonate-") {
		return true
	}
	for _, own := range a.cfg.IdentityHeaders {
		if header == spelled(own) {
			return true
		}
	}
	for _, prefix := range a.cfg.IdentityPrefixes {
		if strings.HasPrefix(header, spelled(prefix)) {
			return true
		}
	}
	return false
}

func spelled(header string) string { return strings.ReplaceAll(strings.ToLower(header), "_", "-") }
