package authorities

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// authority is a self-signed certificate with the name, and its key.
func authority(t *testing.T, name string) (cert []byte, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, DNSNames: []string{"server"}}
	cert, err = x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// asked are the authorities that a server with config names to a client, and the version of TLS that they speak.
func asked(t *testing.T, config *tls.Config, version uint16) (names []string, ok bool) {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	server, enough := tls.Server(theirs, config), errors.New("enough")
	go func() { _ = server.Handshake() }()
	client := tls.Client(ours,
		&tls.Config{InsecureSkipVerify: true, MaxVersion: version,
			GetClientCertificate: func(i *tls.CertificateRequestInfo) (*tls.Certificate, error) {
				ok = true
				for _, der := range i.AcceptableCAs {
					var rdn pkix.RDNSequence
					if rest, err := asn1.Unmarshal(der, &rdn); err != nil || len(rest) > 0 {
						t.Errorf("a name that is none: %v", err)
					}
					var name pkix.Name
					name.FillFromRDNSequence(&rdn)
					names = append(names, name.CommonName)
				}
				return nil, enough
			}})
	_ = client.Handshake() // ends with enough, or without a question
	return names, ok
}

// As Kubernetes' server does: "Acceptable client certificate CA names" of `openssl s_client` are those of both files,
// the clients' first.
func TestSet(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, authorities ...string) string {
		var out []byte
		for _, a := range authorities {
			der, _ := authority(t, a)
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, out, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	open := func(path string) *File {
		f, err := NewFile(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		f.now = func() func() time.Time { // each look is one at the file
			at := time.Now()
			return func() time.Time { at = at.Add(checkEvery); return at }
		}()
		return f
	}
	der, key := authority(t, "server")
	serve := func(sources ...Source) *tls.Config {
		config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
		Of(sources...).Ask(config)
		return config
	}
	if names, ok := asked(t, serve(), tls.VersionTLS13); ok {
		t.Errorf("without sources a certificate is asked for: %v", names)
	}
	clients, proxy := file("clients", "clients-ca"), file("proxy", "proxy-ca")
	config := serve(open(clients), open(proxy))
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		if names, _ := asked(t, config, version); !slices.Equal(names, []string{"clients-ca", "proxy-ca"}) {
			t.Errorf("TLS %x: %v", version, names)
		}
	}
	before, _ := config.GetConfigForClient(nil)
	if again, _ := config.GetConfigForClient(nil); again != before {
		t.Error("nothing changed, and sessions cannot be resumed")
	}
	file("clients", "clients-ca", "clients-ca-2")
	if names, _ := asked(t, config,
		tls.VersionTLS13); !slices.Equal(names, []string{"clients-ca", "clients-ca-2", "proxy-ca"}) {
		t.Errorf("after the file changed: %v", names)
	}
}
