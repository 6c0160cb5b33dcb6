package main

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/util/keyutil"

	"bonsai/pkg/apiserver/authn/oidc/oidctest"
	"bonsai/pkg/apiserver/storage/etcdtest"
	"bonsai/pkg/apiserver/webhook/webhooktest"
)

// certificate is one of a client. By is the authority that signs it: clients, proxies or strangers.
type certificate struct {
	By      string   `json:"by"`
	Name    string   `json:"name,omitempty"`
	Groups  []string `json:"groups,omitempty"`
	UIDs    []string `json:"uids,omitempty"`
	Expired bool     `json:"expired,omitempty"`
	// Server makes it a certificate for servers alone.
	Server bool `json:"server,omitempty"`
}

// idToken is one of the OpenID provider.
type idToken struct {
	Claims map[string]any `json:"claims"`
	// Expires is how long it is good; negative: it has expired.
	Expires string `json:"expires,omitempty"`
	// Stranger signs it by a key that the provider does not publish. Cut leaves its last bytes out.
	Stranger bool `json:"stranger,omitempty"`
	Cut      int  `json:"cut,omitempty"`
}

// world is what a scenario needs beside its server.
type world struct {
	scenario *scenario
	dir      string
	hooks    *hooks
	clients  map[string]*tls.Certificate
	kept     map[string]string // tokens
	// there puts the names of this run into texts, back takes them out.
	there, back *strings.Replacer
}

func newWorld(t *testing.T, s *scenario) *world {
	t.Helper()
	w := &world{scenario: s, dir: t.TempDir(), hooks: &hooks{}, kept: map[string]string{},
		clients: map[string]*tls.Certificate{}}
	known, stranger := oidctest.NewECDSA(t, "known"), oidctest.NewECDSA(t, "stranger")
	provider := oidctest.New(t, known)
	hook := webhooktest.NewServer(t, w.hooks)
	authority, err := json.Marshal(provider.Authority)
	if err != nil {
		t.Fatal(err)
	}
	w.there = strings.NewReplacer("$HOOK", hook.URL, "$CA", base64.StdEncoding.EncodeToString(hook.CABundle), "$DIR",
		w.dir, "$ISSUER", provider.URL, "$AUTHORITY", string(authority))
	w.back = strings.NewReplacer(hook.URL, "$HOOK", base64.StdEncoding.EncodeToString(hook.CABundle), "$CA", w.dir,
		"$DIR", provider.URL, "$ISSUER", provider.URL[len("https://"):], "$ISSUER")
	files := map[string]string{"tokens": "admin,admin,u-admin,system:masters\n"}
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	files["sa.key"], files["issuer.crt"] = string(key), provider.Authority
	w.makeCertificates(t, files)
	for name, text := range s.Files {
		files[name] = w.fill(text)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, token := range s.Tokens {
		signer := known
		if token.Stranger {
			signer = stranger
		}
		w.kept[name] = w.sign(t, signer, &token)
	}
	return w
}

func (w *world) fill(text string) string { return w.there.Replace(text) }

func (w *world) sign(t *testing.T, key oidctest.Key, token *idToken) string {
	t.Helper()
	text, err := json.Marshal(token.Claims)
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{}
	if err := json.Unmarshal([]byte(w.fill(string(text))), &claims); err != nil {
		t.Fatal(err)
	}
	good, err := time.ParseDuration(cmp.Or(token.Expires, "1h"))
	if err != nil {
		t.Fatal(err)
	}
	claims["exp"] = time.Now().Add(good).Unix()
	signed := key.Sign(t, claims)
	return signed[:len(signed)-token.Cut]
}

// makeCertificates makes the authorities, into files, and what they sign.
func (w *world) makeCertificates(t *testing.T, files map[string]string) {
	t.Helper()
	type authority struct {
		cert *x509.Certificate
		key  *ecdsa.PrivateKey
	}
	signers := map[string]authority{}
	for _, name := range []string{"clients", "proxies", "strangers"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
			BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		signers[name] = authority{cert, key}
		files[name+".crt"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	serial := int64(1)
	for name, c := range w.scenario.Certificates {
		by, ok := signers[c.By]
		if !ok {
			t.Fatalf("certificate %s: no authority %q", name, c.By)
		}
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		serial++
		template := &x509.Certificate{SerialNumber: big.NewInt(serial),
			Subject:   pkix.Name{CommonName: c.Name, Organization: c.Groups},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if c.Expired {
			template.NotAfter = time.Now().Add(-time.Minute)
		}
		if c.Server {
			template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}
		for _, uid := range c.UIDs {
			template.Subject.ExtraNames = append(template.Subject.ExtraNames,
				pkix.AttributeTypeAndValue{Type: []int{1, 3, 6, 1, 4, 1, 57683, 2}, Value: uid})
		}
		der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
		if err != nil {
			t.Fatal(err)
		}
		w.clients[name] = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	}
}

// client is an HTTP client with the certificate of a name, if it is one.
func (w *world) client(as string) *http.Client {
	config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the test's own server
	if cert := w.clients[as]; cert != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// token is the bearer token of a name.
func (w *world) token(as string) string {
	switch {
	case as == "":
		return "admin"
	case as == "nobody" || w.clients[as] != nil:
		return ""
	}
	return cmp.Or(w.kept[as], as)
}

// flags are those of every server, and then the scenario's.
func (w *world) flags(t *testing.T, s *server) []string {
	t.Helper()
	_, port, _ := strings.Cut(strings.TrimPrefix(s.url, "https://"), ":")
	args := []string{"--etcd-servers=" + etcdtest.Start(t).Endpoint, "--bind-address=127.0.0.1",
		"--secure-port=" + port, "--permit-port-sharing", "--cert-dir=$DIR/serving", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=$DIR/sa.key", "--service-account-signing-key-file=$DIR/sa.key",
		"--token-auth-file=$DIR/tokens", "--service-cluster-ip-range=10.96.0.0/16",
		"--disable-admission-plugins=ServiceAccount"}
	if w.scenario.Files["policy.yaml"] != "" {
		args = append(args, "--audit-policy-file=$DIR/policy.yaml", "--audit-log-path=$DIR/audit.log")
	}
	if !slices.ContainsFunc(w.scenario.Flags, func(f string) bool { return strings.HasPrefix(f, "--authorization-") }) {
		args = append(args, "--authorization-mode=Node,RBAC")
	}
	args = append(args, w.scenario.Flags...)
	for i := range args {
		args[i] = w.fill(args[i])
	}
	return args
}

// start starts our server, or the real one for a recording.
func (w *world) start(t *testing.T, real bool) *server {
	t.Helper()
	if !real {
		s := newServer(t, "ours")
		s.runOurs(t, w.flags(t, s))
		w.awaitReady(t, s)
		return s
	}
	if os.Getenv("REFERENCE_KUBE_APISERVER") == "" {
		t.Fatal("REFERENCE_KUBE_APISERVER names no kube-apiserver to record")
	}
	s := newServer(t, "the real one")
	s.runReference(t, w.flags(t, s))
	w.awaitReady(t, s)
	return s
}

func (w *world) awaitReady(t *testing.T, s *server) {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-tick.C:
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/readyz", nil)
			if err != nil {
				t.Fatal(err)
			}
			if code, _, _, err := w.send(r, "admin"); err == nil && code == http.StatusOK {
				return
			}
		case <-s.ended:
			t.Fatalf("%s has ended", s.name)
		case <-deadline:
			t.Fatalf("%s is not ready", s.name)
		}
	}
}

// hooks are all webhooks of the scenarios, by path.
type hooks struct {
	mu    sync.Mutex
	posts []post
}

// post is a request to the audit webhook.
type post struct {
	request *http.Request
	body    []byte
}

// ServeHTTP implements http.Handler.
func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch kind := strings.Split(r.URL.Path, "/")[1]; kind {
	case "audit":
		h.mu.Lock()
		h.posts = append(h.posts, post{r, body})
		h.mu.Unlock()
	case "tokens":
		reviewToken(w, body)
	case "authorize":
		reviewAccess(w, body)
	default:
		annotate(w, kind, body)
	}
}

// annotate answers as an admission webhook, by its path.
func annotate(w http.ResponseWriter, path string, body []byte) {
	var review struct{ Request struct{ UID string } }
	if json.Unmarshal(body, &review) != nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	patch := func(doc string) string {
		return `"patchType":"JSONPatch","patch":"` + base64.StdEncoding.EncodeToString([]byte(doc)) + `"`
	}
	more := map[string]string{
		"annotate": `"auditAnnotations":{"who":"me","note":"looked"}`,
		"badkey":   `"auditAnnotations":{"bad key!":"x","ok":"y"}`,
		"deny":     `"status":{"message":"no"},"auditAnnotations":{"why":"policy"}`,
		"patch": patch(`[{"op":"add","path":"/data","value":{"a":"patched"}}]`) +
			`,"auditAnnotations":{"did":"patch"}`, "noop": patch(`[]`),
	}[path]
	if more != "" {
		more = "," + more
	}
	if path == "fail" {
		w.WriteHeader(http.StatusInternalServerError)
	}
	fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":%v%s}}`,
		review.Request.UID, path != "deny", more)
}

// reviewToken knows the tokens that begin with "hook-"; "hook-broken" is an error.
func reviewToken(w http.ResponseWriter, body []byte) {
	var review struct{ Spec struct{ Token string } }
	_ = json.Unmarshal(body, &review)
	name, known := strings.CutPrefix(review.Spec.Token, "hook-")
	status := map[string]any{"authenticated": false}
	switch {
	case name == "broken":
		http.Error(w, "no", http.StatusInternalServerError)
		return
	case name == "refused":
		status["error"] = "refused, as told"
	case known:
		status = map[string]any{"authenticated": true, "user": map[string]any{"username": name, "uid": "h-" + name,
			"groups": []string{"hooked"}, "extra": map[string]any{"example.org/from": []string{"a", "b"}}}}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
		"status": status})
}

// reviewAccess allows, denies, fails or has no opinion by the user's name.
func reviewAccess(w http.ResponseWriter, body []byte) {
	var review struct{ Spec struct{ User string } }
	_ = json.Unmarshal(body, &review)
	status := map[string]any{"allowed": false}
	switch review.Spec.User {
	case "allowed":
		status = map[string]any{"allowed": true, "reason": "the hook allows"}
	case "denied":
		status = map[string]any{"allowed": false, "denied": true, "reason": "the hook denies"}
	case "unsure":
		status = map[string]any{"allowed": false, "reason": "the hook is unsure"}
	case "erring":
		status = map[string]any{"allowed": false, "evaluationError": "the hook cannot think"}
	case "broken":
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "authorization.k8s.io/v1",
		"kind": "SubjectAccessReview", "status": status})
}

// events are those of the log and of the webhook, by Audit-ID, and the webhook's requests without their events.
func (w *world) events(t *testing.T) (map[string][]any, []any) {
	t.Helper()
	out := map[string][]any{}
	note := func(line []byte) {
		if err := sameOrder(line); err != nil {
			t.Errorf("an event of the audit log: %v", err)
		}
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		id, _ := e["auditID"].(string)
		if strings.HasPrefix(id, "step-") {
			out[id] = append(out[id], w.normal(&server{url: "https://$SERVER"}, e))
		}
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "audit.log"))
	if err == nil && !w.scenario.Legacy {
		for line := range bytes.Lines(text) {
			note(line)
		}
	}
	w.hooks.mu.Lock()
	defer w.hooks.mu.Unlock()
	var posts []any
	seen := map[string]bool{}
	for _, p := range w.hooks.posts {
		var list map[string]json.RawMessage
		var items []json.RawMessage
		if err := json.Unmarshal(p.body, &list); err != nil {
			t.Fatalf("%v: %s", err, p.body)
		}
		if err := json.Unmarshal(list["items"], &items); err != nil {
			t.Fatalf("%v: %s", err, p.body)
		}
		for _, item := range items {
			note(item)
		}
		delete(list, "items")
		head, err := json.Marshal(map[string]any{"list": list, "method": p.request.Method, "path": p.request.URL.Path,
			"type": p.request.Header["Content-Type"], "accept": p.request.Header["Accept"]})
		if err != nil {
			t.Fatal(err)
		}
		if !seen[string(head)] {
			seen[string(head)] = true
			var doc any
			if err := json.Unmarshal(head, &doc); err != nil {
				t.Fatal(err)
			}
			posts = append(posts, doc)
		}
	}
	return out, posts
}

// legacyLines are the lines of a request in an audit log that is not JSON.
func (w *world) legacyLines(t *testing.T, id string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, fmt.Sprintf("id=%q", id)) {
			lines = append(lines, w.normalText(&server{url: "https://$SERVER"}, strings.TrimSuffix(line, "\n")))
		}
	}
	return lines
}
