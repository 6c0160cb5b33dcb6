// Package requestheader trusts a front proxy to say who the caller is: the proxy shows a client certificate of its own
// authority and names the user in headers.
package requestheader

import (
	"net/http"
	"time"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/authorities"
	"bonsai/pkg/frontproxy"
)

// Config is what an Authenticator needs (the --requestheader-* flags).
type Config struct {
	// CA are the authorities of the proxy's certificate.
	CA authorities.Source
	// AllowedNames are the common names the proxy's certificate may have; empty: any.
	AllowedNames []string
	Headers      frontproxy.Headers
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Authenticator reads identities from a front proxy's headers.
type Authenticator struct{ cfg Config }

var _ authn.Authenticator = (*Authenticator)(nil)

// New returns an Authenticator.
func New(cfg Config) *Authenticator {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Authenticator{cfg}
}

// Authenticate implements authn.Authenticator. Identity headers beside a certificate that is not a trusted proxy's are
// an error, and do not count; those of a trusted proxy are removed from the request.
func (a *Authenticator) Authenticate(r *http.Request) (*request.User, error) {
	trust := frontproxy.Trust{Roots: a.cfg.CA.Bundle().Pool, AllowedNames: a.cfg.AllowedNames, Headers: a.cfg.Headers}
	id, err := trust.Identify(r, a.cfg.Now())
	if id == nil || err != nil {
		return nil, err
	}
	return &request.User{Name: id.Name, UID: id.UID, Groups: id.Groups, Extra: id.Extra}, nil
}
