package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// ServingCertificate returns the certificate in the files kubelet.crt and kubelet.key of dir. If there is none, or it
// has expired, it makes a self-signed one for the host name and addresses, valid for a year.
func ServingCertificate(dir, hostname string, ips []net.IP, now time.Time) (tls.Certificate, error) {
	crt, key := filepath.Join(dir, "kubelet.crt"), filepath.Join(dir, "kubelet.key")
	if cert, err := tls.LoadX509KeyPair(crt, key); err == nil && cert.Leaf != nil && now.Before(cert.Leaf.NotAfter) {
		return cert, nil
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the serving key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: fmt.Sprintf("%s@%d", hostname, now.Unix())},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, DNSNames: []string{hostname}, IPAddresses: ips,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the serving certificate: %w", err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("encode the serving key: %w", err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return tls.Certificate{}, fmt.Errorf("make the directory of certificates: %w", err)
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})
	crtPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := errors.Join(os.WriteFile(key, keyPEM, 0o600), os.WriteFile(crt, crtPEM, 0o644)); err != nil {
		return tls.Certificate{}, fmt.Errorf("keep the serving certificate: %w", err)
	}
	return tls.X509KeyPair(crtPEM, keyPEM)
}
