package serviceaccount

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiserver/request"
)

const issuerURL = "https://kubernetes.default.svc"

// objects is a Getter over a map by "namespace/name".
type objects map[string]runtime.Object

func (o objects) Get(_ context.Context, ns, name string) (runtime.Object, error) {
	if obj := o[ns+"/"+name]; obj != nil {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("things"), name)
}

func (o objects) GetCached(ctx context.Context, ns, name string) (runtime.Object, error) {
	return o.Get(ctx, ns, name)
}

func objectMeta(ns, name, uid string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(uid)}
}

type world struct {
	now           time.Time
	issuer        *Issuer
	signer        jose.Signer // by key
	authenticator *Authenticator
	accounts      objects
	pods          objects
	secrets       objects
	key           crypto.Signer
}

func newWorld(t *testing.T, key crypto.Signer) *world {
	w := &world{now: time.Unix(1_700_000_000, 0), key: key,
		accounts: objects{"ns/sa": &corev1.ServiceAccount{ObjectMeta: objectMeta("ns", "sa", "sa-uid")}},
		pods:     objects{"ns/p": &corev1.Pod{ObjectMeta: objectMeta("ns", "p", "p-uid")}},
		secrets:  objects{},
	}
	now := func() time.Time { return w.now }
	signer, err := NewSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	w.issuer, err = NewIssuer(
		IssuerConfig{URL: issuerURL, Signer: signer, APIAudiences: []string{"api"}, Extend: true,
			MaxLifetime: 10 * 365 * 24 * time.Hour, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if local, ok := signer.(keySigner); ok {
		w.signer = local.signer
	}
	pub, err := NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	w.authenticator = New(Config{Keys: FixedKeys{pub}, Issuers: []string{issuerURL}, APIAudiences: []string{"api"},
		ServiceAccounts: w.accounts, Pods: w.pods, Secrets: w.secrets, Nodes: objects{}, Now: now})
	return w
}

func (w *world) ask(token string, auds ...string) (*request.User, error) {
	u, _, err := w.authenticator.AuthenticateToken(context.Background(), token, auds)
	return u, err
}

func ecKey(t *testing.T) crypto.Signer {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func boundRequest() Request {
	return Request{Namespace: "ns", ServiceAccount: Ref{"sa", "sa-uid"}, Pod: &Ref{"p", "p-uid"},
		Node: &Ref{"n", "n-uid"}}
}

func TestBoundToken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Request)
		world  func(*world)
		auds   []string
		want   string // in the error; "" is good
	}{
		"good":             {},
		"bound to nothing": {change: func(r *Request) { r.Pod, r.Node = nil, nil }},
		"another audience": {auds: []string{"vault"}, want: "invalid for the target audiences"},
		"one of the audiences": {change: func(r *Request) {
			r.Audiences = []string{"x", "vault"}
		}, auds: []string{"vault"}},
		"not for the API": {change: func(r *Request) {
			r.Audiences = []string{"x"}
		}, want: "invalid for the target audiences"},
		"expired":         {world: func(w *world) { w.now = w.now.Add(61 * time.Minute) }, want: "expired"},
		"from the future": {world: func(w *world) { w.now = w.now.Add(-time.Minute) }, want: "not valid yet"},
		"no account":      {world: func(w *world) { delete(w.accounts, "ns/sa") }, want: "invalidated"},
		"another pod": {world: func(w *world) {
			w.pods["ns/p"] = &corev1.Pod{ObjectMeta: objectMeta("ns", "p", "new")}
		}, want: "does not match"},
		"no pod":        {world: func(w *world) { delete(w.pods, "ns/p") }, want: "invalidated"},
		"pod is ending": {world: func(w *world) { end(w.pods["ns/p"], w.now.Add(-30*time.Second)) }},
		"pod has ended": {world: func(w *world) {
			end(w.pods["ns/p"], w.now.Add(-2*time.Minute))
		}, want: "deleted"},
		"node that is not there": {change: func(r *Request) { r.Pod = nil }, want: "invalidated"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, req := newWorld(t, ecKey(t)), boundRequest()
			if c.change != nil {
				c.change(&req)
			}
			token, expires, err := w.issuer.Issue(context.Background(), req)
			if err != nil || !expires.Equal(w.now.Add(time.Hour)) {
				t.Fatalf("got %v, %v", expires, err)
			}
			if c.world != nil {
				c.world(w)
			}
			u, err := w.ask(token, c.auds...)
			if c.want == "" {
				if err != nil || u == nil || u.Name != "system:serviceaccount:ns:sa" || u.UID != "sa-uid" ||
					len(u.Groups) != 2 {
					t.Fatalf("got %+v, %v", u, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), token) {
				t.Fatalf("got %v, %v; want %q", u, err, c.want)
			}
		})
	}
}

func end(obj runtime.Object, at time.Time) {
	obj.(*corev1.Pod).DeletionTimestamp = &metav1.Time{Time: at}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	w, req := newWorld(t, key), boundRequest()
	req.Lifetime = warnLifetime
	token, expires, err := w.issuer.Issue(context.Background(), req)
	if err != nil || !expires.Equal(w.now.Add(warnLifetime)) {
		t.Fatalf("got %v, %v", expires, err)
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := parsed.Claims(key.Public(), &claims); err != nil {
		t.Fatal(err)
	}
	delete(claims, "jti")
	got, _ := json.Marshal(claims)
	want := `{"aud":["api"],"exp":1731536000,"iat":1700000000,"iss":"https://kubernetes.default.svc","kubernetes.io":{"namespace":"ns",` +
		`"node":{"name":"n","uid":"n-uid"},"pod":{"name":"p","uid":"p-uid"},"serviceaccount":{"name":"sa","uid":"sa-uid"},"warnafter":1700003607},` +
		`"nbf":1700000000,"sub":"system:serviceaccount:ns:sa"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	u, err := w.ask(token)
	if err != nil || u.Extra[extraPodName][0] != "p" || u.Extra[extraNodeUID][0] != "n-uid" ||
		!strings.HasPrefix(u.Extra[extraCredentialID][0], "JTI=") {
		t.Errorf("got %+v, %v", u, err)
	}
}

func TestStrangersTokens(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t, ecKey(t)), newWorld(t, ecKey(t))
	forged, _, err := other.issuer.Issue(context.Background(), boundRequest())
	if err != nil {
		t.Fatal(err)
	}
	if u, err := w.ask(forged); u != nil || err == nil {
		t.Errorf("signed by another key: got %v, %v", u, err)
	}
	other.issuer.cfg.URL = "https://elsewhere"
	foreign, _, _ := other.issuer.Issue(context.Background(), boundRequest())
	none := "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMifQ."
	for _, token := range []string{foreign, none, "", "a.b.c", "abc", strings.Repeat("a.", 20000)} {
		if u, err := w.ask(token); u != nil || err != nil {
			t.Errorf("%.20q: got %v, %v; want no opinion", token, u, err)
		}
	}
}

func TestLegacyToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ecKey(t))
	token, err := jwt.Signed(w.signer).Claims(jwt.Claims{Issuer: legacyIssuer, Subject: username("ns", "sa")}).
		Claims(legacyClaims{Name: "sa", UID: "sa-uid", Secret: "s", Namespace: "ns"}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	if u, err := w.ask(token); u != nil || err == nil {
		t.Fatalf("without its secret: got %v, %v", u, err)
	}
	w.secrets["ns/s"] = &corev1.Secret{ObjectMeta: objectMeta("ns", "s", ""),
		Data: map[string][]byte{"token": []byte(token)}}
	if u, err := w.ask(token); err != nil || u == nil || u.Name != "system:serviceaccount:ns:sa" {
		t.Fatalf("got %v, %v", u, err)
	}
}

// TestLegacyTokensAreTracked: the day of a use is noted once, and a token that was marked invalid is refused, which is
// a use as well
// (https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#auto-generated-legacy-serviceaccount-token-clean-up).
func TestLegacyTokensAreTracked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ecKey(t))
	reg := prometheus.NewRegistry()
	w.authenticator.cfg.Metrics = NewMetrics(reg)
	var noted []string
	w.authenticator.cfg.Used = func(_ context.Context, s *corev1.Secret, day string) error {
		noted = append(noted, s.Name+" "+day)
		s.Labels = map[string]string{LabelLastUsed: day, LabelInvalidSince: s.Labels[LabelInvalidSince]}
		return nil
	}
	token, err := jwt.Signed(w.signer).Claims(jwt.Claims{Issuer: legacyIssuer, Subject: username("ns", "sa")}).
		Claims(legacyClaims{Name: "sa", UID: "sa-uid", Secret: "s", Namespace: "ns"}).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	s := &corev1.Secret{ObjectMeta: objectMeta("ns", "s", ""), Data: map[string][]byte{"token": []byte(token)}}
	w.secrets["ns/s"] = s
	is := func(want string, days ...string) {
		t.Helper()
		u, err := w.ask(token)
		if (err == nil) != (want == "") || err == nil && u == nil ||
			err != nil && !strings.Contains(err.Error(), want) || !slices.Equal(noted, days) {
			t.Errorf("got %v, %v, noted %v", u, err, noted)
		}
	}
	is("", "s 2023-11-14")
	is("", "s 2023-11-14")
	w.accounts["ns/sa"].(*corev1.ServiceAccount).Secrets = []corev1.ObjectReference{{Name: "s"}}
	w.now = w.now.Add(24 * time.Hour)
	is("", "s 2023-11-14", "s 2023-11-15")
	s.Labels[LabelInvalidSince] = "2023-11-15"
	w.now = w.now.Add(24 * time.Hour)
	is(`has been marked invalid. Use tokens from the TokenRequest API`, "s 2023-11-14", "s 2023-11-15", "s 2023-11-16")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		got[strings.TrimPrefix(f.GetName(), "serviceaccount_")] = f.Metric[0].GetCounter().GetValue()
	}
	if got["legacy_tokens_total"] != 3 || got["legacy_manual_token_uses_total"] != 2 ||
		got["legacy_auto_token_uses_total"] != 1 || got["invalid_legacy_auto_token_uses_total"] != 1 {
		t.Errorf("counted %v", got)
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	pub, err := NewPublicKey(ecKey(t).Public())
	if err != nil {
		t.Fatal(err)
	}
	conf, jwks := Discovery(issuerURL, "https://1.2.3.4/openid/v1/jwks", FixedKeys{pub})
	rec := httptest.NewRecorder()
	conf.ServeHTTP(rec, httptest.NewRequest("GET", ConfigurationPath, nil))
	if want := `{"issuer":"https://kubernetes.default.svc","jwks_uri":"https://1.2.3.4/openid/v1/jwks","response_types_supported":["id_token"],` +
		`"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}`; rec.Body.String() !=
		want {
		t.Errorf("got %s", rec.Body)
	}
	rec = httptest.NewRecorder()
	jwks.ServeHTTP(rec, httptest.NewRequest("GET", JWKSPath, nil))
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(rec.Body.Bytes(), &set); err != nil || len(set.Keys) != 1 || set.Keys[0].KeyID != pub.ID ||
		!set.Keys[0].IsPublic() {
		t.Errorf("got %s, %v", rec.Body, err)
	}
}
