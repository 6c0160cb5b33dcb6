package certificate

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestBootstrap: the first certificate makes a kubeconfig; a kubelet that is started again meanwhile goes on with its
// request, one that has its certificate asks for none, and one whose certificate has ended does.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, dir := newAuthority(t, time.Hour), t.TempDir()
		file := filepath.Join(dir, "kubeconfig")
		boot := func(ctx context.Context) error {
			return Bootstrap(ctx, BootstrapConfig{Kubeconfig: file,
				Connection: &rest.Config{Host: "https://api:6443", BearerToken: "t",
					TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")}},
				Requests: a, Store: Store{filepath.Join(dir, "pki"), "kubelet-client"}, Node: "n", Now: time.Now,
				Log: slog.New(slog.DiscardHandler)})
		}
		a.decide = func(int, *request) *request { return nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if boot(ctx) == nil {
			t.Error("no certificate, and no error")
		}
		a.mu.Lock()
		for name, r := range a.requests {
			a.requests[name] = a.sign(r)
		}
		a.mu.Unlock()
		if err := boot(t.Context()); err != nil || a.count() != 1 {
			t.Fatalf("%v, asked %d times", err, a.count())
		}
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil || config.Host != "https://api:6443" || config.BearerToken != "" ||
			string(config.CAData) != "ca" || config.CertFile != filepath.Join(dir, "pki/kubelet-client-current.pem") {
			t.Errorf("%v, %+v", err, config)
		}
		if _, err := os.Stat(filepath.Join(dir, "pki/kubelet-client.key.tmp")); !os.IsNotExist(err) {
			t.Errorf("the key stays: %v", err)
		}
		a.decide = func(_ int, r *request) *request { return a.sign(r) }
		if err := boot(t.Context()); err != nil || a.count() != 1 {
			t.Errorf("%v, asked %d times", err, a.count())
		}
		time.Sleep(time.Hour)
		if err := boot(t.Context()); err != nil || a.count() != 2 {
			t.Errorf("%v, asked %d times", err, a.count())
		}
	})
}

// TestBootstrapRefused: a refusal ends the kubelet with its reason, and its next start asks again.
func TestBootstrapRefused(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t, time.Hour), t.TempDir()
	a.decide = func(_ int, r *request) *request { return denied(r) }
	for range 2 {
		err := Bootstrap(t.Context(),
			BootstrapConfig{Kubeconfig: filepath.Join(dir, "k"), Connection: &rest.Config{}, Requests: a,
				Store: Store{dir, "kubelet-client"}, Node: "n",
				Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), "go away") {
			t.Error(err)
		}
	}
	if a.count() != 2 {
		t.Errorf("asked %d times", a.count())
	}
}
