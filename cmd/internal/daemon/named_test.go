package daemon

import (
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestNamedCertificates: a client gets the certificate of the name it asks for; a name that was given wins over one in
// a certificate, and an exact one over a wildcard.
func TestNamedCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pair := func(host string) string {
		if _, err := KeptSelfSigned(dir, host, host, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, host+".crt") + "," + filepath.Join(dir, host+".key")
	}
	var s Serving
	for _, value := range []string{pair("own.example"), pair("a") + ":*.foo.com,foo.com",
		pair("b") + ":www.foo.com,Own2.example"} {
		if err := s.Named.Set(value); err != nil {
			t.Fatal(err)
		}
	}
	usual, err := selfSigned("usual")
	if err != nil {
		t.Fatal(err)
	}
	config, err := s.TLS(func() *tls.Certificate { return &usual }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"own.example": "own.example", "OWN.example": "own.example",
		"foo.com": "a", "x.foo.com": "a", "y.x.foo.com": "usual",
		"www.foo.com": "b", "own2.example": "b", "other": "usual", "": "usual"} {
		a, b := net.Pipe()
		go func() {
			_ = tls.Server(a, config).HandshakeContext(t.Context()) // what the client sees is what counts
			a.Close()
		}()
		client := tls.Client(b, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		if err := client.HandshakeContext(t.Context()); err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if got := client.ConnectionState().PeerCertificates[0].Subject.CommonName; got != want {
			t.Errorf("%q gets the certificate of %q, want %q", name, got, want)
		}
		b.Close()
	}
	for _, bad := range []string{"a", "a,", ",b", "a,b,c"} {
		if err := new(NamedCertificates).Set(bad); err == nil ||
			err.Error() != "expected comma separated certificate and key file paths" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if text := s.Named.String(); text == "[]" || (&NamedCertificates{}).String() != "[]" {
		t.Errorf("shown as %s", text)
	}
}

// TestKeptSelfSigned: the certificate is made once, and its key is nobody else's to read.
func TestKeptSelfSigned(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	first, err := KeptSelfSigned(dir, "x", "host", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	second, err := KeptSelfSigned(dir, "x", "host", slog.New(slog.DiscardHandler))
	if err != nil || string(second.Current().Certificate[0]) != string(first.Current().Certificate[0]) {
		t.Errorf("made anew: %v", err)
	}
	if st, err := os.Stat(filepath.Join(dir, "x.key")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x.crt"), []byte("no"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := KeptSelfSigned(dir, "x", "host", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a broken certificate is replaced")
	}
}
