package kms_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	kmsapi "k8s.io/kms/apis/v2"

	"bonsai/pkg/apiserver/storage/encryption/kms"
	"bonsai/pkg/apiserver/storage/encryption/kmstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opener returns what opens providers of a plug-in, by a clock that is later by a duration.
func opener(t *testing.T, plugin *kmstest.Plugin, later *atomic.Int64) func() *kms.Provider {
	t.Helper()
	return func() *kms.Provider {
		p, err := kms.New(kms.Config{Name: "test", Endpoint: plugin.Endpoint, Timeout: 3 * time.Second,
			Now:     func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
			Metrics: kms.NewMetrics(prometheus.NewRegistry(), "server"),
			Log:     slog.New(slog.NewTextHandler(t.Output(), nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		return p
	}
}

// TestKeyChange: after the service's key has changed, the next check makes a seed by the new one. Values by the old one
// are read, and are stale; a server that has seen the new key alone reads them, too. A plug-in whose status and
// encryption name different keys changes nothing.
func TestKeyChange(t *testing.T) {
	t.Parallel()
	plugin := kmstest.New(t, "a").Start(t)
	var later atomic.Int64
	open := opener(t, plugin, &later)
	path := []byte("/registry/secrets/default/s")
	p := open()
	seal := func(text string) []byte {
		t.Helper()
		stored, err := p.Append(nil, path, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return stored
	}
	opens := func(by *kms.Provider, stored []byte, text string, stale bool) {
		t.Helper()
		if got, old, err := by.Open(t.Context(), path, stored); err != nil || string(got) != text || old != stale {
			t.Errorf("opened %q, stale %t (%v), want %q, stale %t", got, old, err, text, stale)
		}
	}
	if err := p.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := seal("first")
	opens(p, first, "first", false)
	plugin.Set(func(b *kmstest.Behaviour) {
		b.Status = func(r *kmsapi.StatusResponse) { r.KeyId = "b" } // and it still encrypts by a
	})
	if err := p.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "its status names") {
		t.Errorf("two keys at once: %v", err)
	}
	opens(p, first, "first", false)
	opens(p, seal("meanwhile"), "meanwhile", false)
	plugin.Set(func(b *kmstest.Behaviour) { *b = kmstest.Behaviour{KeyID: "b"} })
	encrypts := plugin.Encrypts.Load()
	if err := errors.Join(p.Check(t.Context()), p.Check(t.Context())); err != nil {
		t.Fatal(err)
	}
	if n := plugin.Encrypts.Load() - encrypts; n != 1 {
		t.Errorf("%d seeds for one new key", n)
	}
	second := seal("second")
	opens(p, first, "first", true)
	opens(p, second, "second", false)
	other := open()
	if err := other.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	opens(other, first, "first", true)
	opens(other, second, "second", false)
	// The old key comes back: a seed of before is not written with again.
	plugin.Set(func(b *kmstest.Behaviour) { b.KeyID = "a" })
	if err := p.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	opens(p, second, "second", true)
	opens(p, first, "first", false)
	// Without the plug-in, values are written for three minutes, and what is known is read after that, too.
	plugin.Stop()
	later.Store(int64(2 * time.Minute))
	opens(p, seal("alone"), "alone", false)
	later.Store(int64(4 * time.Minute))
	if _, err := p.Append(nil, path, []byte("x")); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("written four minutes after the last check: %v", err)
	}
	opens(p, first, "first", false)
}

// TestWrongSeed: a plug-in that once answers with another key's seed does not make values unreadable for longer than it
// does so. A damaged value costs no call when others have shown that the seed is right.
func TestWrongSeed(t *testing.T) {
	t.Parallel()
	plugin := kmstest.New(t, "a").Start(t)
	var later atomic.Int64
	open := opener(t, plugin, &later)
	path := []byte("/registry/secrets/default/s")
	writer, reader := open(), open()
	if err := writer.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored, err := writer.Append(nil, path, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	plugin.Set(func(b *kmstest.Behaviour) { b.Decrypted = func([]byte) []byte { return make([]byte, 32) } })
	for range 10 {
		if value, _, err := reader.Open(t.Context(), path, stored); err == nil {
			t.Fatalf("opened %q by a wrong seed", value)
		}
	}
	if reader.AtHand(stored) {
		later.Add(int64(2 * time.Second))
	}
	if reader.AtHand(stored) {
		t.Error("a wrong seed is at hand after two seconds")
	}
	plugin.Set(func(b *kmstest.Behaviour) { b.Decrypted = nil })
	later.Add(int64(2 * time.Second))
	if value, _, err := reader.Open(t.Context(), path, stored); err != nil || string(value) != "x" {
		t.Errorf("with the right seed: %q, %v", value, err)
	}
	calls := plugin.Decrypts.Load()
	for range 10 {
		later.Add(int64(2 * time.Second))
		if value, _, err := reader.Open(t.Context(), []byte("/registry/secrets/default/moved"), stored); err == nil {
			t.Errorf("a moved value is opened to %q", value)
		}
	}
	if n := plugin.Decrypts.Load() - calls; n != 0 || !reader.AtHand(stored) {
		t.Errorf("%d calls for moved values", n)
	}
}

// TestHostileWords: a plug-in chooses neither how long an error is nor its characters.
func TestHostileWords(t *testing.T) {
	t.Parallel()
	plugin := kmstest.New(t, "a").Start(t)
	long := strings.Repeat("x\x1b[2J", 1<<10)
	p := opener(t, plugin, &atomic.Int64{})()
	for name, change := range map[string]func(*kmsapi.StatusResponse){
		"version": func(r *kmsapi.StatusResponse) { r.Version = long },
		"health":  func(r *kmsapi.StatusResponse) { r.Healthz = long },
		"key":     func(r *kmsapi.StatusResponse) { r.KeyId = long },
	} {
		plugin.Set(func(b *kmstest.Behaviour) { b.Status = change })
		err := p.Check(t.Context())
		if err == nil || len(err.Error()) > 1200 || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: got %.2000q", name, err)
		}
	}
}
