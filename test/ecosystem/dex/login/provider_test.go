package login

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"
)

// The client that users log in for, and where it gets its codes: nobody follows that redirect.
const (
	clientID = "try"
	secret   = "try-secret"
	callback = "http://localhost:9999/callback"
)

// provider is dex at an address that it keeps while it is stopped and started.
type provider struct {
	url, authority string
	certificate    tls.Certificate
	client         *http.Client
	storage        storage.Storage
	web            string
	stop           func()
}

// newProvider chooses the address of a dex that does not run yet.
func newProvider(t *testing.T) *provider {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{url: "https://" + l.Addr().String(), stop: func() {}}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "dex"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	p.certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	p.authority = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	p.client = clientOf(p.authority)
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/dexidp/dex").Output()
	if err != nil {
		t.Fatal(err)
	}
	p.web = filepath.Join(strings.TrimSpace(string(out)), "web")
	t.Cleanup(func() { p.stop() })
	return p
}

// clientOf returns a client that trusts an authority and follows no redirect.
func clientOf(authority string) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(authority))
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// forget drops all keys, logins and refresh tokens: dex has its storage in memory.
func (p *provider) forget(t *testing.T, quiet logrus.FieldLogger) {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("jane's password"), bcrypt.DefaultCost)
	if err != nil {
		t.Fatal(err)
	}
	s := storage.WithStaticClients(memory.New(quiet), []storage.Client{{ID: clientID, Secret: secret, Name: "Try",
		RedirectURIs: []string{callback}}})
	s = storage.WithStaticPasswords(s, []storage.Password{{Email: "jane@example.org", Hash: hash, Username: "jane",
		UserID: "u-jane"}}, quiet)
	p.storage = storage.WithStaticConnectors(s, []storage.Connector{
		{ID: server.LocalConnector, Type: server.LocalConnector, Name: "Password"},
		{ID: "mock", Type: "mockCallback", Name: "Mock"}})
}

// start starts dex, with other keys than before if anew.
func (p *provider) start(t *testing.T, anew bool) {
	t.Helper()
	quiet := logrus.New()
	quiet.Out = io.Discard
	if anew {
		p.forget(t, quiet)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	h, err := server.NewServer(ctx, server.Config{Issuer: p.url, Storage: p.storage, SkipApprovalScreen: true,
		Web: server.WebConfig{Dir: p.web}, Logger: quiet, PrometheusRegistry: prometheus.NewRegistry()})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", strings.TrimPrefix(p.url, "https://"))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{p.certificate}, MinVersion: tls.VersionTLS12}}
	ended := make(chan error, 1)
	go func() { ended <- s.ServeTLS(l, "", "") }()
	p.stop = func() {
		cancel()
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("dex: %v", err)
		}
		p.stop = func() {}
	}
}

// tokens are the answer to a login or a refresh.
type tokens struct {
	ID      string `json:"id_token"`
	Refresh string `json:"refresh_token"`
}

// login logs a user in by a connector of dex, as in a browser.
func (p *provider) login(t *testing.T, connector string) tokens {
	t.Helper()
	page := p.url + "/auth?" + url.Values{"client_id": {clientID}, "redirect_uri": {callback},
		"response_type": {"code"}, "scope": {"openid email groups offline_access"}, "state": {"x"}}.Encode()
	code, body, _ := p.get(t, page, nil)
	link := regexp.MustCompile(`/auth/` + connector + `\?req=[a-z0-9]+`).FindString(body)
	if link == "" {
		t.Fatalf("no link to log in by %s: %d %s", connector, code, body)
	}
	page = p.url + link
	var form url.Values
	if connector == server.LocalConnector {
		form = url.Values{"login": {"jane@example.org"}, "password": {"jane's password"}}
	}
	for range 5 { // from the connector by dex's own pages to the client
		code, body, to := p.get(t, page, form)
		if to == nil {
			t.Fatalf("%s leads nowhere: %d %s", page, code, body)
		}
		if strings.HasPrefix(to.String(), callback) {
			got, err := grant(t.Context(), p.client, p.url, url.Values{"grant_type": {"authorization_code"},
				"code": {to.Query().Get("code")}, "redirect_uri": {callback}})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		page, form = to.String(), nil
	}
	t.Fatal("the login has no end")
	return tokens{}
}

// get gets a page, or posts a form, and returns what it says and where it leads.
func (p *provider) get(t *testing.T, page string, form url.Values) (int, string, *url.URL) {
	t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(t.Context(), method, page, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	to, err := answer.Location()
	if err != nil && !errors.Is(err, http.ErrNoLocation) {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body), to
}

// grant asks dex for tokens.
func grant(ctx context.Context, client *http.Client, issuer string, form url.Values) (tokens, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, issuer+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		return tokens{}, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(clientID, secret)
	answer, err := client.Do(r)
	if err != nil {
		return tokens{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return tokens{}, err
	}
	var got tokens
	if err := json.Unmarshal(body, &got); err != nil || got.ID == "" || got.Refresh == "" {
		return tokens{}, fmt.Errorf("no tokens: %s: %s", answer.Status, body)
	}
	return got, nil
}
