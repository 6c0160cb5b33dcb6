package daemon

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
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"bonsai/pkg/durable"
	"bonsai/pkg/keypair"
)

// KeptSelfSigned is the serving certificate NAME.crt with its key NAME.key in dir; if they are not there, they are made
// for host. Later changes of the files are logged.
func KeptSelfSigned(dir, name, host string, log *slog.Logger) (*keypair.Pair, error) {
	certFile, keyFile := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	pair, err := keypair.Load(certFile, keyFile, log)
	if errors.Is(err, fs.ErrNotExist) {
		var c tls.Certificate
		if c, err = selfSigned(host); err == nil {
			err = save(c, certFile, keyFile)
		}
		if err == nil {
			pair, err = keypair.Load(certFile, keyFile, log)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--cert-dir %q: %w", dir, err)
	}
	return pair, nil
}

// save writes a certificate and its key, both whole or not at all: half of one would end every later start.
func save(c tls.Certificate, certFile, keyFile string) error {
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return err
	}
	return errors.Join(
		os.MkdirAll(filepath.Dir(certFile), 0o755),
		durable.Replace(keyFile+".new", keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
		durable.Replace(certFile+".new", certFile,
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})),
		os.Chmod(certFile, 0o644))
}

// selfSigned makes a serving certificate for host (a name or an address), localhost and the loopback addresses, valid
// for a year, with an ECDSA P-256 key.
func selfSigned(host string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a serial number: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: host},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = append(template.IPAddresses, ip)
	} else if host != "" {
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign the certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
