// Package requestheader trusts a front proxy to say who the caller is: the proxy shows a client certificate of its own
// authority and names the user in headers.
package requestheader

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/request"
)

// Config is what an Authenticator needs (the --requestheader-* flags).
type Config struct {
	// CA are the authorities of the proxy's certificate.
	CA *authn.CAFile
	// AllowedNames are the common names the proxy's certificate may have; empty: any.
	AllowedNames []string
	// UsernameHeaders, UIDHeaders and GroupHeaders are header names, the first that is set counts (groups: all of them);
	// ExtraHeaderPrefixes are prefixes of headers whose rest is a percent-encoded key.
	UsernameHeaders, UIDHeaders, GroupHeaders, ExtraHeaderPrefixes []string
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
	name := first(r.Header, a.cfg.UsernameHeaders)
	if name == "" || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	if err := a.verify(r.TLS.PeerCertificates); err != nil {
		return nil, err
	}
	u := &request.User{Name: name, UID: first(r.Header, a.cfg.UIDHeaders)}
	for _, h := range a.cfg.GroupHeaders {
		u.Groups = append(u.Groups, r.Header.Values(h)...)
	}
	u.Extra = extra(r.Header, a.cfg.ExtraHeaderPrefixes)
	a.strip(r.Header)
	return u, nil
}

func (a *Authenticator) verify(certs []*x509.Certificate) error {
	opts := x509.VerifyOptions{Roots: a.cfg.CA.Bundle().Pool, Intermediates: x509.NewCertPool(), CurrentTime: a.cfg.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, c := range certs[1:] {
		opts.Intermediates.AddCert(c)
	}
	if _, err := certs[0].Verify(opts); err != nil {
		return fmt.Errorf("verifying the front proxy's certificate: %w", err)
	}
	if cn := certs[0].Subject.CommonName; len(a.cfg.AllowedNames) > 0 && !slices.Contains(a.cfg.AllowedNames, cn) {
		return fmt.Errorf("x509: subject with cn=%s is not in the allowed list", cn)
	}
	return nil
}

func first(h http.Header, names []string) string {
	for _, n := range names {
		if v := strings.TrimSpace(h.Get(n)); v != "" {
			return v
		}
	}
	return ""
}

func extra(h http.Header, prefixes []string) map[string][]string {
	var m map[string][]string
	for name, values := range h {
		for _, p := range prefixes {
			if len(name) <= len(p) || !strings.EqualFold(name[:len(p)], p) {
				continue
			}
			key := strings.ToLower(name[len(p):])
			if k, err := url.PathUnescape(key); err == nil {
				key = k
			}
			if m == nil {
				m = map[string][]string{}
			}
			m[key] = append(m[key], values...)
		}
	}
	return m
}

func (a *Authenticator) strip(h http.Header) {
	for _, list := range [][]string{a.cfg.UsernameHeaders, a.cfg.UIDHeaders, a.cfg.GroupHeaders} {
		for _, n := range list {
			h.Del(n)
		}
	}
	for name := range h {
		for _, p := range a.cfg.ExtraHeaderPrefixes {
			if len(name) >= len(p) && strings.EqualFold(name[:len(p)], p) {
				h.Del(name)
			}
		}
	}
}
