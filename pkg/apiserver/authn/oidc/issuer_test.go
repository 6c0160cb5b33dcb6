package oidc

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/authn/oidc/oidctest"
)

// TestIssuers: a dead and a slow issuer keep nobody else out; tokens are believed by their own issuer's keys alone.
func TestIssuers(t *testing.T) {
	t.Parallel()
	key, other := oidctest.NewECDSA(t, "one"), oidctest.NewECDSA(t, "one")
	p, q, dead, slow := oidctest.New(t, key), oidctest.New(t, other), oidctest.New(t, key), oidctest.New(t, key)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	dead.Answer(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) })
	slow.Answer(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	a, _ := open(t, Options{}, basic(dead), basic(slow), basic(p), basic(q))
	g := a.current.Load()
	<-g.issuers[p.URL].ready
	<-g.issuers[q.URL].ready
	name := func(k oidctest.Key, of *oidctest.Provider) string {
		t.Helper()
		user, _, err := a.AuthenticateToken(t.Context(), k.Sign(t, good(of, nil)), nil)
		if err != nil {
			return err.Error()
		}
		return user.Name
	}
	for _, tt := range []struct {
		key  oidctest.Key
		of   *oidctest.Provider
		want string
	}{
		{key, p, "p:jane"}, {other, q, "p:jane"},
		{other, p, "oidc: verify token: failed to verify signature: failed to verify id token signature"},
		{key, q, "oidc: verify token: failed to verify signature: failed to verify id token signature"},
		{key, dead, "oidc: authenticator not initialized"}, {key, slow, "oidc: authenticator not initialized"},
	} {
		if got := name(tt.key, tt.of); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
	dead.Answer(nil)
	<-g.issuers[dead.URL].ready
	if got := name(key, dead); got != "p:jane" {
		t.Errorf("the issuer is back: %s", got)
	}
}

// TestRotation: a new key is fetched when the first token names it, a removed one counts no more after the next fetch,
// and forged tokens cause no more than one fetch a second.
func TestRotation(t *testing.T) {
	t.Parallel()
	one, two, three := oidctest.NewECDSA(t, "one"), oidctest.NewECDSA(t, "two"), oidctest.NewECDSA(t, "three")
	p := oidctest.New(t, one)
	clock := newClock()
	a, _ := open(t, Options{Now: clock.now}, basic(p))
	found(t, a)
	keys := a.current.Load().issuers[p.URL].found.Load().keys
	try := func(k oidctest.Key) error {
		_, err := keys.VerifySignature(t.Context(), k.Sign(t, good(p, nil)))
		return err
	}
	if err := try(one); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if try(three) == nil {
			t.Fatal("a token of an unknown key is good")
		}
	}
	if n := p.Fetches(); n != 1 {
		t.Errorf("%d fetches within one second", n)
	}
	p.Publish(two)
	clock.add(fetchPause)
	if err := try(two); err != nil {
		t.Errorf("after rotation: %v", err)
	}
	if try(one) == nil {
		t.Error("the removed key still counts")
	}
	clock.add(fetchPause)
	p.Answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{")) })
	if try(three) == nil {
		t.Error("a token of an unknown key is good")
	}
	if err := try(two); err != nil {
		t.Errorf("a fetch that failed took the keys away: %v", err)
	}
}

// TestDocuments: what a provider must not make the server believe or read.
func TestDocuments(t *testing.T) {
	t.Parallel()
	p := oidctest.New(t, oidctest.NewECDSA(t, "one"))
	say := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
	}
	for name, tt := range map[string]struct {
		answer  http.HandlerFunc
		problem string
	}{
		"another issuer": {say(`{"issuer":"https://evil","jwks_uri":"` + p.URL + `/keys"}`), "did not match"},
		"no issuer":      {say(`{"jwks_uri":"` + p.URL + `/keys"}`), "did not match"},
		"plain keys":     {say(`{"issuer":"` + p.URL + `","jwks_uri":"http://x/keys"}`), "no https URL"},
		"no keys":        {say(`{"issuer":"` + p.URL + `"}`), "no https URL"},
		"no JSON":        {say("<html>"), "no OpenID configuration"},
		"a long issuer":  {say(`{"issuer":"` + strings.Repeat("x", maxDocument/2) + `"}`), "did not match"},
		"long keys":      {say(`{"issuer":"` + p.URL + `","jwks_uri":"http://a:b@` + strings.Repeat("x", 1<<16) + `"}`), "a:xxxxx@"},
		"a long status": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 404 "+strings.Repeat("x\x1b", 1<<14)+"\r\n\r\n")
			_ = conn.Close()
		}, "404 xxx"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			for range 2 * maxDocument / 1024 {
				if _, err := w.Write(bytes.Repeat([]byte(" "), 1024)); err != nil {
					return
				}
			}
		}, "more than"},
		"not there": {func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, "404"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}, "redirects more"},
		"redirect to http": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://x/", http.StatusFound)
		}, "not https"},
	} {
		p.Answer(tt.answer)
		j := basic(p)
		fetch, err := newFetcher(p.Authority, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := discover(t.Context(), fetch, &j.Issuer); err == nil || !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: %.2000v, want %q", name, err, tt.problem)
		} else if len(err.Error()) > 1200 || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: the error has %d bytes or control characters", name, len(err.Error()))
		}
	}
	fetch, err := newFetcher("", nil)
	if err != nil {
		t.Fatal(err)
	}
	j := basic(p)
	if _, err := discover(t.Context(), fetch, &j.Issuer); err == nil || !strings.Contains(err.Error(), "x509") {
		t.Errorf("without its authority: %v", err)
	}
}

// TestNoPasswords: whatever is wrong with an issuer's URLs, the error does not show their passwords.
func TestNoPasswords(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"http://u:secret@h", "https://u:secret@h", "https://u:secret@h:port", "https://u:%secret@h",
		"https://u:sec/secret@h", "u:secret@h", "https://u:secret@h?q#f"} {
		v := validator{issuers: sets.New[string](), discoveries: sets.New[string]()}
		if strings.Contains(u, "://") { // as issuers of this server with a password have
			v.disallowed = []string{u}
		}
		v.url(u, field.NewPath("issuer", "url"))
		for range 2 {
			v.issuer(&Issuer{URL: u, DiscoveryURL: u}, field.NewPath("issuer"))
		}
		if text := v.errs.ToAggregate(); text == nil || strings.Contains(text.Error(), "secret") {
			t.Errorf("%s: %v", u, text)
		}
	}
}

// TestEgress: an issuer is connected to in the way of its egressSelectorType, and directly without one.
func TestEgress(t *testing.T) {
	t.Parallel()
	p := oidctest.New(t, oidctest.NewECDSA(t, "one"))
	var asked, went []string
	o := Options{Egress: func(kind string) func(ctx context.Context, network, addr string) (net.Conn, error) {
		asked = append(asked, kind)
		return func(ctx context.Context, network, addr string) (net.Conn, error) {
			went = append(went, kind)
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}
	}}
	for _, kind := range []string{"", "cluster", "controlplane"} {
		dial, err := o.dialer(kind)
		if err != nil {
			t.Fatal(err)
		}
		fetch, err := newFetcher(p.Authority, dial)
		if err != nil {
			t.Fatal(err)
		}
		j := basic(p)
		if _, err := discover(t.Context(), fetch, &j.Issuer); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if want := []string{"cluster", "controlplane"}; !slices.Equal(asked, want) || !slices.Equal(went, want) {
		t.Errorf("asked for %v and went by %v, want %v", asked, went, want)
	}
}
