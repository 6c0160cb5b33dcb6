// Package frontproxy reads who a request is from out of the headers that a front proxy sets: a server before this one,
// such as the aggregating API server, which shows a client certificate of its own authority.
// https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/
package frontproxy

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Headers are the names of headers with an identity in them: of UsernameHeaders and UIDHeaders the first that is set
// counts, of GroupHeaders all; ExtraHeaderPrefixes are prefixes of headers whose rest is a percent-encoded key.
type Headers struct {
	UsernameHeaders, UIDHeaders, GroupHeaders, ExtraHeaderPrefixes []string
}

// Trust is which proxies and headers are believed.
type Trust struct {
	// Roots are the authorities of a proxy's certificate; nil: no proxy is believed.
	Roots *x509.CertPool
	// AllowedNames are the common names that the certificate may have; empty: any.
	AllowedNames []string
	Headers      Headers
}

// Identity is what a proxy says of a user.
type Identity struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Identify reads the identity and removes its headers from the request. Nil without an error means that the request
// names nobody or shows no certificate. Identity headers beside a certificate that is not a trusted proxy's are an
// error, and stay.
func (t *Trust) Identify(r *http.Request, now time.Time) (*Identity, error) {
	name := first(r.Header, t.Headers.UsernameHeaders)
	if t.Roots == nil || name == "" || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	if err := t.verify(r.TLS.PeerCertificates, now); err != nil {
		return nil, err
	}
	id := &Identity{Name: name, UID: first(r.Header, t.Headers.UIDHeaders),
		Extra: extra(r.Header, t.Headers.ExtraHeaderPrefixes)}
	for _, h := range t.Headers.GroupHeaders {
		id.Groups = append(id.Groups, r.Header.Values(h)...)
	}
	t.Headers.strip(r.Header)
	return id, nil
}

func (t *Trust) verify(certs []*x509.Certificate, now time.Time) error {
	opts := x509.VerifyOptions{Roots: t.Roots, Intermediates: x509.NewCertPool(), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, c := range certs[1:] {
		opts.Intermediates.AddCert(c)
	}
	if _, err := certs[0].Verify(opts); err != nil {
		return fmt.Errorf("verifying the front proxy's certificate: %w", err)
	}
	if cn := certs[0].Subject.CommonName; len(t.AllowedNames) > 0 && !slices.Contains(t.AllowedNames, cn) {
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

func (n *Headers) strip(h http.Header) {
	for _, list := range [][]string{n.UsernameHeaders, n.UIDHeaders, n.GroupHeaders} {
		for _, name := range list {
			h.Del(name)
		}
	}
	for name := range h {
		for _, p := range n.ExtraHeaderPrefixes {
			if len(name) >= len(p) && strings.EqualFold(name[:len(p)], p) {
				h.Del(name)
			}
		}
	}
}
