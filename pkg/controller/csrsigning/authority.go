package csrsigning

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"bonsai/api/certificates"
)

const (
	// backdate is how long before it is made a certificate begins to hold, for clocks that are behind.
	backdate = 5 * time.Minute
	// short is the lifetime below which that is not taken from it.
	short = 8 * time.Hour
	// shortest is the least that a request gets that asks for less.
	shortest = 10 * time.Minute
)

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// Load reads an authority from PEM files.
func Load(certFile, keyFile string) (*Authority, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of %q and %q: %w", certFile, keyFile, err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the key in %q cannot sign", keyFile)
	}
	return &Authority{cert: pair.Leaf, key: signer}, nil
}

// sign makes the certificate that r asks for, as PEM.
func (a *Authority) sign(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage, lifetime time.Duration,
	now time.Time) ([]byte, error) {
	bits, extended, err := certificates.X509Usages(usages)
	if err != nil {
		return nil, err
	}
	from, to := validity(lifetime, now)
	if to.After(a.cert.NotAfter) {
		to = a.cert.NotAfter
	}
	if !now.Before(to) {
		return nil, fmt.Errorf("refusing to sign a certificate that expired in the past: NotAfter %v", to)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		Subject: r.Subject, DNSNames: r.DNSNames, IPAddresses: r.IPAddresses, EmailAddresses: r.EmailAddresses,
		URIs:      r.URIs,
		NotBefore: from, NotAfter: to, KeyUsage: bits, ExtKeyUsage: extended, BasicConstraintsValid: true,
	}, a.cert, r.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// validity returns from when to when a certificate holds that is made now.
func validity(lifetime time.Duration, now time.Time) (from, to time.Time) {
	from = now.Add(-backdate)
	if lifetime < short {
		return from, now.Add(lifetime)
	}
	return from, from.Add(lifetime)
}

// lifetimeOf is what a request gets of what it asks for.
func lifetimeOf(asked *int32, longest time.Duration) time.Duration {
	if asked == nil {
		return longest
	}
	return min(max(time.Duration(*asked)*time.Second, shortest), longest)
}
