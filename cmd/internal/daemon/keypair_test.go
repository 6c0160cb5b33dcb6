package daemon

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/pkg/keypair"
)

// TestKeyPairChanges: a renewed pair is shown to the next client; while there is only half of it, or nothing, the one
// from before is.
func TestKeyPairChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string) {
		t.Helper()
		c, err := selfSigned(name)
		if err == nil {
			err = save(c, filepath.Join(dir, name, "tls.crt"), filepath.Join(dir, name, "tls.key"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	write("second")
	write("third")
	// As in a mounted Secret, the files are links to what is in a directory, which is a link, too.
	point := func(link, to string) {
		t.Helper()
		next := filepath.Join(dir, "next")
		if err := os.Symlink(to, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	point("data", "first")
	point("tls.crt", "data/tls.crt")
	point("tls.key", "data/tls.key")
	var logged bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&logged, nil))
	pair, err := keypair.Load(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), logger)
	if err != nil {
		t.Fatal(err)
	}
	var named Serving
	if err := named.Named.Set(filepath.Join(dir, "tls.crt") + "," + filepath.Join(dir, "tls.key")); err != nil {
		t.Fatal(err)
	}
	config, err := named.TLS(func() *tls.Certificate { t.Error("the certificate has no such name"); return nil },
		logger)
	if err != nil {
		t.Fatal(err)
	}
	// The named one is asked by the name in the certificate, which changes with it.
	shows := func(want string) {
		t.Helper()
		if got := pair.Current().Leaf.Subject.CommonName; got != want {
			t.Errorf("the certificate of %s, want %s", got, want)
		}
		if c, err := config.GetCertificate(&tls.ClientHelloInfo{ServerName: want}); err != nil || c == nil ||
			c.Leaf.Subject.CommonName != want {
			t.Errorf("by its name %s: %v, %v", want, c, err)
		}
	}
	shows("first")
	before := pair.Current()
	if pair.Current() != before {
		t.Error("files that did not change were read again")
	}
	point("data", "second")
	shows("second")
	point("tls.crt", "third/tls.crt") // the key is second's
	shows("second")
	// Each of the two said it once, however many clients came.
	if got := strings.Count(logged.String(), "could not be read again"); got != 2 {
		t.Errorf("said %d times:\n%s", got, &logged)
	}
	point("tls.key", "third/tls.key")
	shows("third")
	if err := os.Remove(filepath.Join(dir, "tls.key")); err != nil {
		t.Fatal(err)
	}
	shows("third")
	point("tls.crt", "first/tls.crt")
	point("tls.key", "first/tls.key")
	shows("first")
	if _, err := keypair.Load(filepath.Join(dir, "none"), filepath.Join(dir, "tls.key"), logger); err == nil {
		t.Error("a file that is not there is no error")
	}
}
