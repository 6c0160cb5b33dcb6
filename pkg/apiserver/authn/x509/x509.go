// Package x509 recognises callers by their TLS client certificate: the subject's common name is the user, its
// organizations are the groups, and it may name a UID.
package x509

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/authorities"
)

// credentialIDKey is the user's extra that tells certificates apart: "X509SHA256=<hash of the certificate>".
const credentialIDKey = "authentication.kubernetes.io/credential-id"

// Config is what an Authenticator needs.
type Config struct {
	// CA are the authorities that client certificates must come from (--client-ca-file).
	CA authorities.Source
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Metrics takes how long the certificates of callers are still valid; nil: nobody sees it.
	Metrics prometheus.Registerer
}

// maxKnown bounds the certificates whose verification is remembered.
const maxKnown = 1024

// Authenticator verifies client certificates. A connection's certificate is verified once and not per request, as long
// as it is valid and the authorities stay the same.
type Authenticator struct {
	cfg  Config
	left prometheus.Observer // the seconds that a caller's certificate is still valid

	mu         sync.Mutex
	generation uint64
	known      map[*x509.Certificate]verified // by the connection's parsed certificate
}

type verified struct {
	user  *request.User
	until time.Time // the earliest end of validity in the chain
}

var _ authn.Authenticator = (*Authenticator)(nil)

// New returns an Authenticator.
func New(cfg Config) *Authenticator {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	left := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "apiserver_client_certificate_expiration_seconds",
		Help: "[ALPHA] Seconds that the client certificate of an authenticated request was still valid.",
		Buckets: []float64{0, 30 * minute, hour, 2 * hour, 6 * hour, 12 * hour, day, 2 * day, 4 * day, 7 * day,
			30 * day, 90 * day, 180 * day, 360 * day}})
	if cfg.Metrics != nil {
		cfg.Metrics.MustRegister(left)
	}
	return &Authenticator{cfg: cfg, left: left, known: map[*x509.Certificate]verified{}}
}

// Times in seconds.
const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
)

// Authenticate implements authn.Authenticator. The certificate must be good for client authentication.
func (a *Authenticator) Authenticate(r *http.Request) (*request.User, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	leaf, now, bundle := r.TLS.PeerCertificates[0], a.cfg.Now(), a.cfg.CA.Bundle()
	if u := a.lookup(leaf, bundle.Generation, now); u != nil {
		a.left.Observe(leaf.NotAfter.Sub(now).Seconds())
		return u, nil
	}
	v, err := verify(r.TLS.PeerCertificates, bundle.Pool, now)
	if err != nil {
		return nil, err
	}
	a.left.Observe(leaf.NotAfter.Sub(now).Seconds())
	if v.user != nil {
		a.remember(leaf, bundle.Generation, v)
	}
	return v.user, nil
}

func (a *Authenticator) lookup(leaf *x509.Certificate, generation uint64, now time.Time) *request.User {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.generation != generation {
		a.generation = generation
		clear(a.known)
		return nil
	}
	v, ok := a.known[leaf]
	if !ok || now.After(v.until) {
		delete(a.known, leaf)
		return nil
	}
	return v.user
}

func (a *Authenticator) remember(leaf *x509.Certificate, generation uint64, v verified) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.generation != generation {
		return
	}
	if len(a.known) >= maxKnown {
		clear(a.known)
	}
	a.known[leaf] = v
}

// verify checks the chain and reads the user from its leaf; no user when the subject has no common name.
func verify(certs []*x509.Certificate, roots *x509.CertPool, now time.Time) (verified, error) {
	leaf := certs[0]
	opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, c := range certs[1:] {
		opts.Intermediates.AddCert(c)
	}
	chains, err := leaf.Verify(opts)
	if err != nil {
		return verified{}, fmt.Errorf("verifying certificate SN=%s, SKID=%s, AKID=%s failed: %w",
			leaf.SerialNumber, colonHex(leaf.SubjectKeyId), colonHex(leaf.AuthorityKeyId), err)
	}
	if leaf.Subject.CommonName == "" {
		return verified{}, nil
	}
	uid, err := subjectUID(leaf)
	if err != nil {
		return verified{}, err
	}
	until := leaf.NotAfter
	for _, c := range chains[0] {
		if c.NotAfter.Before(until) {
			until = c.NotAfter
		}
	}
	sum := sha256.Sum256(leaf.Raw)
	return verified{until: until, user: &request.User{
		Name:   leaf.Subject.CommonName,
		UID:    uid,
		Groups: leaf.Subject.Organization,
		Extra:  map[string][]string{credentialIDKey: {"X509SHA256=" + hex.EncodeToString(sum[:])}},
	}}, nil
}

// subjectUID returns the UID in a certificate's subject, under the object identifier that Kubernetes has for it; "" if
// it names none. A certificate with several is refused: which of them its user is would be a guess.
func subjectUID(leaf *x509.Certificate) (string, error) {
	var found []string
	for _, name := range leaf.Subject.Names {
		if !name.Type.Equal(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}) {
			continue
		}
		uid, _ := name.Value.(string)
		if uid == "" {
			return "", errors.New("UID cannot be an empty string")
		}
		found = append(found, uid)
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("expected 1 UID, but found multiple: %v", found)
}

func colonHex(b []byte) string {
	s := make([]byte, 0, 3*len(b))
	for i, x := range b {
		if i > 0 {
			s = append(s, ':')
		}
		s = fmt.Appendf(s, "%02X", x)
	}
	return string(s)
}
