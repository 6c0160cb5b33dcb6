// Package oidc lets users of a real OpenID provider into the cluster: one of zitadel/oidc, on loopback, with which a
// user logs in as in a browser.
package oidc

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// The client, which the users log in for, and where it gets its codes: nobody follows that redirect.
const (
	clientID = "web"
	secret   = "secret"
	callback = "http://localhost:9999/auth/callback"
)

// provider is a started OpenID provider.
type provider struct {
	url, caFile string
	authority   string
	client      *http.Client
}

// start starts a provider with two users. Its keys are others after each start.
func start(t *testing.T) *provider {
	t.Helper()
	var handler atomic.Pointer[http.Handler]
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*handler.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	storage.RegisterClients(storage.WebClient(clientID, secret, callback))
	h := http.Handler(exampleop.SetupServer(s.URL, storage.NewStorage(storage.NewUserStore(s.URL)), nil, false))
	handler.Store(&h)
	p := &provider{url: s.URL, client: s.Client(),
		authority: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))}
	p.caFile = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(p.caFile, []byte(p.authority), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.client.Jar, err = cookiejar.New(nil); err != nil {
		t.Fatal(err)
	}
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return p
}

// login logs a user in and returns the ID token.
func (p *provider) login(t *testing.T, user string) string {
	t.Helper()
	to := p.redirect(t, p.url+"/auth?"+url.Values{"client_id": {clientID}, "redirect_uri": {callback},
		"response_type": {"code"}, "scope": {"openid email profile"}, "state": {"x"}}.Encode(), nil)
	to = p.redirect(t, p.url+"/login/username", url.Values{"username": {user}, "password": {"verysecure"},
		"id": {to.Query().Get("authRequestID")}})
	code := p.redirect(t, to.String(), nil).Query().Get("code")
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/oauth/token",
		strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(clientID, secret)
	answer, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var tokens struct {
		ID string `json:"id_token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&tokens); err != nil || tokens.ID == "" {
		t.Fatalf("no token: %s, %v", answer.Status, err)
	}
	return tokens.ID
}

// redirect gets a page, or posts a form, and returns where it leads.
func (p *provider) redirect(t *testing.T, page string, form url.Values) *url.URL {
	t.Helper()
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	r, err := http.NewRequestWithContext(t.Context(), method, page, strings.NewReader(body))
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
	to, err := answer.Location()
	if err != nil {
		t.Fatalf("%s: %s: %v", page, answer.Status, err)
	}
	return to
}

// who returns who the server says that a token's bearer is.
func who(t *testing.T, c *rest.Config, token string) string {
	t.Helper()
	config := rest.AnonymousClientConfig(c)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err.Error()
	}
	u := review.Status.UserInfo
	return u.Username + " " + strings.Join(u.Groups, ",")
}

// eventually waits until a token is that of a user.
func eventually(t *testing.T, c *rest.Config, token, want string) {
	t.Helper()
	var got string
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true,
		func(context.Context) (bool, error) {
			got = who(t, c, token)
			return got == want, nil
		}); err != nil {
		t.Fatalf("%q, want %q", got, want)
	}
}

// newEnvironment is a control plane of our binaries, or of those in $KUBEBUILDER_ASSETS.
func newEnvironment(t *testing.T) *envtest.Environment {
	t.Helper()
	bin, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "kube-apiserver")); err != nil && os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("SKIPPED: no binaries for the control plane; run `make tools components`")
	}
	return &envtest.Environment{BinaryAssetsDirectory: bin, AttachControlPlaneOutput: testing.Verbose()}
}

// TestFlags: a user logs in, and is known by the --oidc-* flags; a changed token is refused.
func TestFlags(t *testing.T) {
	p := start(t)
	env := newEnvironment(t)
	env.ControlPlane.GetAPIServer().Configure().Set("oidc-issuer-url", p.url).Set("oidc-client-id", clientID).
		Set("oidc-ca-file", p.caFile).Set("oidc-username-prefix", "u:").Set("oidc-groups-claim", "aud").
		Set("oidc-groups-prefix", "for:")
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	token := p.login(t, "test-user2")
	eventually(t, config, token, "u:id2 for:web,system:authenticated")
	parts := strings.Split(token, ".")
	for name, bad := range map[string]string{
		"truncated":         token[:len(token)-10],
		"without signature": parts[0] + "." + parts[1] + ".",
		"other provider's":  start(t).login(t, "test-user2"),
	} {
		if got := who(t, config, bad); got != "Unauthorized" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestFile: users of two providers, by a file that changes.
func TestFile(t *testing.T) {
	one, two := start(t), start(t)
	file := filepath.Join(t.TempDir(), "authn.yaml")
	write := func(providers ...*provider) {
		t.Helper()
		text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n"
		for n, p := range providers {
			text += fmt.Sprintf(`- issuer:
    url: %s
    audiences: [other, %s]
    audienceMatchPolicy: MatchAny
    certificateAuthority: |
      %s
  claimValidationRules:
  - expression: claims.exp - claims.iat < 86400
  claimMappings:
    username: {expression: "'p%d:' + claims.sub"}
    extra:
    - {key: example.org/name, valueExpression: claims.azp}
  userValidationRules:
  - {expression: "!user.username.endsWith(':id1')", message: no administrators}
`, p.url, clientID, strings.ReplaceAll(strings.TrimSpace(p.authority), "\n", "\n      "), n)
		}
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write(one)
	env := newEnvironment(t)
	env.ControlPlane.GetAPIServer().Configure().Set("authentication-config", file)
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	first, second := one.login(t, "test-user2"), two.login(t, "test-user2")
	eventually(t, config, first, "p0:id2 system:authenticated")
	if got := who(t, config, second); got != "Unauthorized" {
		t.Errorf("a provider that the file does not name: %s", got)
	}
	host := strings.TrimPrefix(one.url, "https://")
	if got := who(t, config, one.login(t, "test-user@"+host[:strings.LastIndex(host, ":")])); got != "Unauthorized" {
		t.Errorf("a user that a rule refuses: %s", got)
	}
	write(two, one)
	eventually(t, config, second, "p0:id2 system:authenticated")
	eventually(t, config, first, "p1:id2 system:authenticated")
}
