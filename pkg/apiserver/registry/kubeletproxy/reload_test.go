package kubeletproxy_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stranger is the certificate of an authority that has signed nothing.
func stranger(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true}
	out, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAuthorityChanges: a kubelet is believed by the authorities that the file has now, without a restart; what is no
// certificate changes nothing.
func TestAuthorityChanges(t *testing.T) {
	t.Parallel()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	p := houseBy(t, true, "127.0.0.1", ca, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // the next request shakes hands anew
	})
	good, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	write := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(ca, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trusted := func() bool {
		t.Helper()
		answer := ask(t, p.Log(), "p", "", "container=app")
		if answer != "" && !strings.Contains(answer, "certificate") {
			t.Fatalf("the kubelet answers %q", answer)
		}
		return answer == ""
	}
	await := func(want bool) {
		t.Helper()
		tick, end := time.NewTicker(20*time.Millisecond), time.After(10*time.Second)
		defer tick.Stop()
		for trusted() != want {
			select {
			case <-tick.C:
			case <-end:
				t.Fatalf("trusted: %t", !want)
			}
		}
	}
	await(true)
	write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: stranger(t)}))
	await(false)
	write([]byte("no certificate"))
	if trusted() {
		t.Error("with a file without certificates the kubelet is believed")
	}
	write(good)
	await(true)
}
