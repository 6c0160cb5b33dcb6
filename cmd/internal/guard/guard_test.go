package guard

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// apiServer answers as the API server does: the token "reader" may get /metrics, "nobody" is known, "broken" breaks it.
func apiServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			metav1.TypeMeta
			Status map[string]any `json:"status"`
		}
		if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
			in := &authnv1.TokenReview{}
			decode(t, r, in)
			review.TypeMeta = metav1.TypeMeta{Kind: "TokenReview", APIVersion: "authentication.k8s.io/v1"}
			review.Status = map[string]any{"authenticated": in.Spec.Token != "wrong",
				"user": map[string]any{"username": in.Spec.Token}}
		} else {
			in := &authzv1.SubjectAccessReview{}
			decode(t, r, in)
			review.TypeMeta = metav1.TypeMeta{Kind: "SubjectAccessReview", APIVersion: "authorization.k8s.io/v1"}
			review.Status = map[string]any{"allowed": in.Spec.User == "reader" &&
				*in.Spec.NonResourceAttributes == authzv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}}
			if in.Spec.User == "broken" {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"` + server.URL +
		`"}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// decode reads a protobuf body: four bytes of magic, then an envelope with the object in it.
func decode(t *testing.T, r *http.Request, into interface{ Unmarshal([]byte) error }) {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) < 4 {
		t.Error(len(body), err)
		return
	}
	envelope := runtime.Unknown{}
	if err := envelope.Unmarshal(body[4:]); err != nil {
		t.Error(err)
	}
	if err := into.Unmarshal(envelope.Raw); err != nil {
		t.Error(err)
	}
}

// TestGuard: the answers of upstream's components with the same flags.
func TestGuard(t *testing.T) {
	t.Parallel()
	kubeconfig := apiServer(t)
	with := func(args ...string) http.Handler {
		var f Flags
		fs := pflag.NewFlagSet("x", pflag.ContinueOnError)
		f.AddFlags(fs)
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		guard, err := f.New("x", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h := r.Header.Get("Authorization"); h != "" {
				t.Errorf("the handler sees the credentials %q", h)
			}
			io.WriteString(w, "served")
		}))
	}
	authn, authz := "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig
	both, none, open := with(authn, authz), with(), with(authn, authz, "--authorization-always-allow-paths=/metrics")
	noReviews, noTokens := with(authn), with(authz)
	for _, c := range []struct {
		name                string
		h                   http.Handler
		method, path, token string
		code                int
		body                string
	}{
		{"anonymous", both, "GET", "/metrics", "", 403,
			`"message": "forbidden: User \"system:anonymous\" cannot get path \"/metrics\""`},
		{"health is for all", both, "GET", "/healthz", "", 200, "served"},
		{"but not with a wrong token", both, "GET", "/healthz", "wrong", 401, `"message": "Unauthorized"`},
		{"nor what is below", both, "GET", "/healthz/x", "", 403, "Forbidden"},
		{"wrong token", both, "GET", "/metrics", "wrong", 401, `"kind": "Status"`},
		{"may not", both, "GET", "/metrics", "nobody", 403, `User \"nobody\" cannot get path`},
		{"may", both, "GET", "/metrics", "reader", 200, "served"},
		{"may not POST", both, "POST", "/metrics", "reader", 403, `User \"reader\" cannot post path`},
		{"unknown paths are not told", both, "GET", "/nothing", "", 403, "Forbidden"},
		{"no answer", both, "GET", "/metrics", "broken", 500, "Internal Server Error"},
		{"nobody to ask", none, "GET", "/metrics", "reader", 403, `User \"system:anonymous\" cannot get path`},
		{"nobody to ask about health", none, "GET", "/readyz", "wrong", 200, "served"},
		{"nobody to ask about access", noReviews, "GET", "/metrics", "reader", 403, `User \"reader\" cannot get path`},
		{"nobody to ask about tokens", noTokens, "GET", "/metrics", "reader", 403,
			`User \"system:anonymous\" cannot get path`},
		{"always allowed", open, "GET", "/metrics", "", 200, "served"},
		{"no longer always allowed", open, "GET", "/livez", "", 403, "Forbidden"},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		w := httptest.NewRecorder()
		c.h.ServeHTTP(w, r)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
	}
}

// A refused request writes little to the log, however long its path is: nobody without credentials may push everything
// else out of it.
func TestLongPath(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	var f Flags
	f.AddFlags(pflag.NewFlagSet("x", pflag.ContinueOnError))
	kubeconfig := apiServer(t)
	f.AuthenticationKubeconfig, f.AuthorizationKubeconfig = kubeconfig, kubeconfig
	guard, err := f.New("x", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"wrong", "nobody"} {
		r := httptest.NewRequest("GET", "/"+strings.Repeat("x", 100_000), nil)
		r.Method = strings.Repeat("M", 100_000)
		r.Header.Set("Authorization", "Bearer "+token)
		guard.Wrap(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
	}
	if n := log.Len(); n == 0 || n > 4096 {
		t.Errorf("two refusals write %d bytes: %.200s", n, log.String())
	}
}

func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for flag, f := range map[string]Flags{
		"--authentication-kubeconfig":        {AuthenticationKubeconfig: "/nowhere"},
		"--authorization-kubeconfig":         {AuthorizationKubeconfig: "/nowhere"},
		"--client-ca-file":                   {ClientCAFile: "/nowhere"},
		"--requestheader-client-ca-file":     {ProxyCAFile: "/nowhere"},
		"--authorization-always-allow-paths": {AlwaysAllowPaths: []string{"/a/*/b"}},
	} {
		if _, err := f.New("x", slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// TestRotation: the files of authorities are read again when they change, without a restart, and front proxies need an
// allowed name.
func TestRotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clients, proxies := filepath.Join(dir, "clients"), filepath.Join(dir, "proxies")
	write := func(path string, c *x509.Certificate) {
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	client, proxy, stranger := selfSigned(t, "admin", "system:masters"), selfSigned(t, "proxy"),
		selfSigned(t, "stranger")
	write(clients, client)
	write(proxies, proxy)
	var f Flags
	fs := pflag.NewFlagSet("x", pflag.ContinueOnError)
	f.AddFlags(fs)
	if err := fs.Parse([]string{"--client-ca-file=" + clients, "--requestheader-client-ca-file=" + proxies,
		"--requestheader-allowed-names=proxy,second"}); err != nil {
		t.Fatal(err)
	}
	guard, err := f.New("x", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h := guard.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	code := func(cert *x509.Certificate, headers http.Header) int {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.TLS, r.Header = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}, headers.Clone()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	until := func(what string, ok func() bool) {
		late, again := time.After(30*time.Second), time.NewTicker(20*time.Millisecond)
		defer again.Stop()
		for !ok() {
			select {
			case <-late:
				t.Fatal("never: " + what)
			case <-again.C:
			}
		}
	}
	master, none := http.Header{"X-Remote-User": {"bob"}, "X-Remote-Group": {"system:masters"}}, http.Header{}
	if a, b, c, d := code(client, none), code(proxy, master), code(stranger, master),
		code(client, http.Header{"X-Remote-User": {"bob"}}); a != 200 || b != 200 || c != 401 || d != 200 {
		t.Errorf("client %d, proxy %d, stranger %d, client with a proxy's headers %d", a, b, c, d)
	}
	renewed, second := selfSigned(t, "other", "system:masters"), selfSigned(t, "second")
	write(clients, renewed)
	write(proxies, second)
	until("the new authorities", func() bool { return code(renewed, none) == 200 && code(second, master) == 200 })
	if a, b := code(client, none), code(proxy, master); a != 401 || b != 401 {
		t.Errorf("by the old authorities: client %d, proxy %d", a, b)
	}
	write(proxies, stranger)
	until("another proxy's authority", func() bool { return code(second, master) == 401 })
	if got := code(stranger, master); got != 401 {
		t.Errorf("a proxy whose name is not allowed: %d", got)
	}
}

// selfSigned is a certificate that is its own authority.
func selfSigned(t *testing.T, name string, groups ...string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: groups},
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
