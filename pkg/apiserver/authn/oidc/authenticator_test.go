package oidc

import (
	"bytes"
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/apiserver/authn/oidc/oidctest"
	"bonsai/pkg/apiserver/request"
)

// file is a configuration as a test writes it.
func file(t testing.TB, jwt ...JWT) []byte {
	t.Helper()
	out := map[string]any{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt}
	text, err := yaml.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// basic accepts the tokens of p for "me", named by "sub".
func basic(p *oidctest.Provider) JWT {
	prefix := "p:"
	return JWT{Issuer: Issuer{URL: p.URL, CertificateAuthority: p.Authority, Audiences: []string{"me"}},
		ClaimMappings: ClaimMappings{Username: PrefixedClaimOrExpression{Claim: "sub", Prefix: &prefix}}}
}

// write replaces a file, as who renames another over it.
func write(t testing.TB, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// open returns an Authenticator by the configuration, whose issuers are being looked for, and its file.
func open(t testing.TB, o Options, jwt ...JWT) (*Authenticator, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "authn.yaml")
	write(t, path, file(t, jwt...))
	a, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	run(t, a)
	return a, path
}

func run(t testing.TB, a *Authenticator) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// found waits until all issuers of a are found.
func found(t testing.TB, a *Authenticator) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := a.current.Load().found(ctx); err != nil {
		t.Fatal(err)
	}
}

// good are the claims of a token that basic accepts, with changes.
func good(p *oidctest.Provider, changes map[string]any) map[string]any {
	now := time.Now()
	c := map[string]any{"iss": p.URL, "aud": "me", "sub": "jane", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(c, changes)
	for name, v := range c {
		if v == nil {
			delete(c, name)
		}
	}
	return c
}

// forge returns a token with any header, whose signature sign makes.
func forge(header, claims any, sign func(input string) []byte) string {
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	input := part(header) + "." + part(claims)
	return input + "." + base64.RawURLEncoding.EncodeToString(sign(input))
}

// TestTokens: every good and bad kind of token. An empty want is the name of the user; unknown means that the token is
// left to other authenticators.
func TestTokens(t *testing.T) {
	t.Parallel()
	one, two, foreign := oidctest.NewRSA(t, "one"), oidctest.NewECDSA(t, "two"), oidctest.NewRSA(t, "one")
	p := oidctest.New(t, one, two)
	a, _ := open(t, Options{}, basic(p))
	found(t, a)
	c := func(changes map[string]any) map[string]any { return good(p, changes) }
	now := time.Now()
	der, err := x509.MarshalPKIXPublicKey(one.Private.Public())
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	mac := func(key []byte) func(string) []byte {
		return func(input string) []byte {
			h := hmac.New(sha256.New, key)
			h.Write([]byte(input))
			return h.Sum(nil)
		}
	}
	none := func(string) []byte { return nil }
	token := one.Sign(t, c(nil))
	parts := strings.Split(token, ".")
	unnamed, alien := one, one
	unnamed.ID, alien.ID = "", "three"
	for name, tt := range map[string]struct {
		token string
		// user is who the token is of, and problem what the error says. Without either the token is somebody else's.
		user, problem string
	}{
		"good":                   {token: token, user: "p:jane"},
		"good, ECDSA":            {token: two.Sign(t, c(nil)), user: "p:jane"},
		"good, of two audiences": {token: one.Sign(t, c(map[string]any{"aud": []string{"x", "me"}})), user: "p:jane"},
		"good, no key named":     {token: unnamed.Sign(t, c(nil)), user: "p:jane"},
		"unknown key named":      {token: alien.Sign(t, c(nil)), problem: "failed to verify id token signature"},
		"expired": {token: one.Sign(t, c(map[string]any{"exp": now.Add(-time.Second).Unix()})),
			problem: "token is expired"},
		"no expiry": {token: one.Sign(t, c(map[string]any{"exp": nil})), problem: "token is expired"},
		"not yet valid": {token: one.Sign(t, c(map[string]any{"nbf": now.Add(time.Hour).Unix()})),
			problem: "before the nbf (not before) time"},
		"wrong audience": {token: one.Sign(t, c(map[string]any{"aud": "you"})), problem: "expected audience"},
		"no audience":    {token: one.Sign(t, c(map[string]any{"aud": nil})), problem: "expected audience"},
		"wrong issuer":   {token: one.Sign(t, c(map[string]any{"iss": p.URL + "/"}))},
		"no issuer":      {token: one.Sign(t, c(map[string]any{"iss": nil}))},
		"foreign key":    {token: foreign.Sign(t, c(nil)), problem: "failed to verify id token signature"},
		"no algorithm":   {token: forge(map[string]any{"alg": "none"}, c(nil), none), problem: "malformed jwt"},
		"no algorithm, signed": {token: forge(map[string]any{"alg": "none", "kid": "one"}, c(nil),
			mac(public)), problem: "malformed jwt"},
		"public key as secret": {token: forge(map[string]any{"alg": "HS256", "kid": "one"}, c(nil), mac(public)),
			problem: "malformed jwt"},
		"public key as secret, DER": {token: forge(map[string]any{"alg": "HS256"}, c(nil), mac(der)),
			problem: "malformed jwt"},
		"the key is in the token": {token: ownKey(t, c(nil)), problem: "failed to verify id token signature"},
		"other algorithm of the key": {token: forge(map[string]any{"alg": "PS256", "kid": "one"}, c(nil),
			func(input string) []byte {
				sum := sha256.Sum256([]byte(input))
				s, err := one.Private.Sign(rand.Reader, sum[:], &rsa.PSSOptions{SaltLength: 32, Hash: crypto.SHA256})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}), problem: "failed to verify id token signature"},
		"unknown critical header": {token: forge(map[string]any{"alg": "RS256", "kid": "one", "crit": []string{"x"},
			"x": 1}, c(nil), none), problem: "failed to verify id token signature"},
		"other claims": {token: parts[0] + "." + base64.RawURLEncoding.EncodeToString(
			[]byte(`{"iss":"`+p.URL+`","aud":"me","sub":"root","exp":99999999999}`)) + "." + parts[2],
			problem: "failed to verify id token signature"},
		"truncated signature":  {token: token[:len(token)-4], problem: "oidc: verify token"},
		"no signature":         {token: parts[0] + "." + parts[1] + ".", problem: "oidc: verify token"},
		"no header":            {token: "." + parts[1] + "." + parts[2], problem: "oidc: verify token"},
		"truncated claims":     {token: parts[0] + "." + parts[1][:len(parts[1])-8] + "." + parts[2]},
		"two parts":            {token: parts[0] + "." + parts[1]},
		"four parts":           {token: token + "." + parts[2]},
		"no web token":         {token: "secret"},
		"dots":                 {token: ".."},
		"claims are no object": {token: one.Sign(t, []byte(`["`+p.URL+`"]`))},
		"padded":               {token: parts[0] + "." + parts[1] + "=." + parts[2]},
		"huge": {token: one.Sign(t, c(map[string]any{"x": strings.Repeat("x", maxToken)})),
			problem: "the token has more than 65536 bytes"},
		"name is a number": {token: one.Sign(t, c(map[string]any{"sub": 1})),
			problem: "cannot unmarshal number"},
		"no name":    {token: one.Sign(t, c(map[string]any{"sub": nil})), problem: "claim not present"},
		"empty name": {token: one.Sign(t, c(map[string]any{"sub": ""})), problem: "is empty"},
		"two names":  {token: one.Sign(t, twice(t, c(nil), `"sub":"root"`)), user: "p:root"},
		"audience in another case": {token: one.Sign(t, twice(t, c(map[string]any{"aud": "you"}), `"AUD":"me"`)),
			problem: `the claim "AUD" looks like "aud"`},
		"expiry in another case": {token: one.Sign(t, twice(t, c(map[string]any{"exp": now.Add(-time.Hour).Unix()}),
			`"Exp":99999999999`)), problem: `the claim "Exp" looks like "exp"`},
		"beginning in another case": {token: one.Sign(t, twice(t, c(map[string]any{"nbf": now.Add(time.Hour).Unix()}),
			`"nBf":1`)), problem: `the claim "nBf" looks like "nbf"`},
		"issuer in another case": {token: one.Sign(t, twice(t, c(map[string]any{"iss": "https://other"}),
			`"i\u017fs":"`+p.URL+`"`)), problem: `looks like "iss"`},
		"name in another case": {token: one.Sign(t, twice(t, c(nil), `"SUB":"root"`)), user: "p:jane"},
	} {
		user, audiences, err := a.AuthenticateToken(t.Context(), tt.token, nil)
		switch {
		case tt.user != "" && (err != nil || user == nil || user.Name != tt.user || audiences != nil):
			t.Errorf("%s: %v, %v, %v, want %s", name, user, audiences, err, tt.user)
		case tt.problem != "" && (user != nil || err == nil || !strings.Contains(err.Error(), tt.problem)):
			t.Errorf("%s: %v, %v, want %q", name, user, err, tt.problem)
		case tt.user == "" && tt.problem == "" && (user != nil || err != nil):
			t.Errorf("%s: %v, %v, want neither", name, user, err)
		case err != nil && strings.Contains(err.Error(), parts[2]):
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
	}
}

// ownKey is a token that brings the key by which it is to be verified.
func ownKey(t *testing.T, claims any) string {
	t.Helper()
	k := oidctest.NewECDSA(t, "one")
	return k.SignEmbedded(t, claims)
}

// twice is the JSON of c with a member once more at its end.
func twice(t *testing.T, c map[string]any, member string) []byte {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.TrimSuffix(b, []byte("}")), []byte(","+member+"}")...)
}

// TestMappings: what of the claims becomes the user.
func TestMappings(t *testing.T) {
	t.Parallel()
	key := oidctest.NewECDSA(t, "one")
	p := oidctest.New(t, key)
	none, some := "", "g:"
	name := PrefixedClaimOrExpression{Claim: "sub", Prefix: &none}
	for title, tt := range map[string]struct {
		change  func(j *JWT)
		claims  map[string]any
		user    request.User
		problem string
	}{
		"groups in a list": {func(j *JWT) {
			j.ClaimMappings.Groups = PrefixedClaimOrExpression{Claim: "g", Prefix: &some}
		},
			map[string]any{"g": []string{"a", "b"}, "jti": "7"},
			request.User{Name: "jane", Groups: []string{"g:a", "g:b"},
				Extra: map[string][]string{credentialIDKey: {"JTI=7"}}}, ""},
		"one group": {func(j *JWT) { j.ClaimMappings.Groups = PrefixedClaimOrExpression{Claim: "g", Prefix: &none} },
			map[string]any{"g": "a"}, request.User{Name: "jane", Groups: []string{"a"}}, ""},
		"no groups": {func(j *JWT) { j.ClaimMappings.Groups = PrefixedClaimOrExpression{Claim: "g", Prefix: &none} },
			nil, request.User{Name: "jane"}, ""},
		"groups are numbers": {func(j *JWT) {
			j.ClaimMappings.Groups = PrefixedClaimOrExpression{Claim: "g", Prefix: &none}
		}, map[string]any{"g": []any{"a", 1}}, request.User{}, "parse groups claim"},
		"groups elsewhere": {func(j *JWT) {
			j.ClaimMappings.Groups = PrefixedClaimOrExpression{Claim: "g", Prefix: &none}
		},
			map[string]any{"_claim_names": map[string]any{"g": "src"},
				"_claim_sources": map[string]any{"src": map[string]any{"endpoint": "https://127.0.0.1:1/"}}},
			request.User{}, "distributed claim"},
		"uid": {func(j *JWT) { j.ClaimMappings.UID.Claim = "id" }, map[string]any{"id": "7"},
			request.User{Name: "jane", UID: "7"}, ""},
		"uid is no string": {func(j *JWT) { j.ClaimMappings.UID.Claim = "id" }, map[string]any{"id": 7},
			request.User{}, "parse uid claim"},
		"email": {func(j *JWT) { j.ClaimMappings.Username.Claim = "email" }, map[string]any{"email": "j@x"},
			request.User{Name: "j@x"}, ""},
		"email verified": {func(j *JWT) { j.ClaimMappings.Username.Claim = "email" },
			map[string]any{"email": "j@x", "email_verified": true}, request.User{Name: "j@x"}, ""},
		"email not verified": {func(j *JWT) { j.ClaimMappings.Username.Claim = "email" },
			map[string]any{"email": "j@x", "email_verified": false}, request.User{}, "email not verified"},
		"email verified by a word": {func(j *JWT) { j.ClaimMappings.Username.Claim = "email" },
			map[string]any{"email": "j@x", "email_verified": "true"}, request.User{}, "email_verified"},
		"expressions": {func(j *JWT) {
			j.ClaimMappings = ClaimMappings{Username: PrefixedClaimOrExpression{Expression: "'u:' + claims.sub"},
				Groups: PrefixedClaimOrExpression{Expression: "claims.roles.split(',')"},
				UID:    ClaimOrExpression{Expression: "string(claims.id)"},
				Extra: []ExtraMapping{{Key: "example.org/team", ValueExpression: "claims.?team.orValue('')"},
					{Key: "example.org/level", ValueExpression: "claims.id > 5 ? ['high', ''] : []"}}}
		}, map[string]any{"roles": "a,b", "id": 7},
			request.User{Name: "u:jane", UID: "7", Groups: []string{"a", "b"},
				Extra: map[string][]string{"example.org/level": {"high"}}}, ""},
		"expression makes no string": {func(j *JWT) {
			j.ClaimMappings.Username = PrefixedClaimOrExpression{Expression: "claims.exp"}
		}, nil, request.User{}, "must evaluate to a string"},
		"expression makes nothing": {func(j *JWT) {
			j.ClaimMappings.Username = PrefixedClaimOrExpression{Expression: "claims.sub.substring(4)"}
		}, nil, request.User{}, "empty string"},
		"expression of a claim that is not there": {func(j *JWT) {
			j.ClaimMappings.Username = PrefixedClaimOrExpression{Expression: "claims.nick"}
		}, nil, request.User{}, "no such key: nick"},
		"groups expression makes numbers": {func(j *JWT) {
			j.ClaimMappings.Groups = PrefixedClaimOrExpression{Expression: "[1]"}
		}, nil, request.User{}, "must evaluate to a string"},
		"required claim": {func(j *JWT) {
			j.ClaimValidationRules = []ClaimValidationRule{{Claim: "hd", RequiredValue: "x"}}
		}, map[string]any{"hd": "x"}, request.User{Name: "jane"}, ""},
		"required claim has another value": {func(j *JWT) {
			j.ClaimValidationRules = []ClaimValidationRule{{Claim: "hd", RequiredValue: "x"}}
		}, map[string]any{"hd": "y"}, request.User{},
			"oidc: required claim hd value does not match. Got = y, want = x"},
		"required claim is missing": {func(j *JWT) {
			j.ClaimValidationRules = []ClaimValidationRule{{Claim: "hd"}}
		}, nil, request.User{}, "oidc: required claim hd not present in ID token"},
		"rule about claims": {func(j *JWT) {
			j.ClaimValidationRules = []ClaimValidationRule{
				{Expression: "claims.exp - claims.iat <= 60", Message: "too long"}}
		}, nil, request.User{}, "validation expression 'claims.exp - claims.iat <= 60' failed: too long"},
		"rule about the user": {func(j *JWT) {
			j.UserValidationRules = []UserValidationRule{
				{Expression: "!user.username.startsWith('system:')", Message: "reserved"},
				{Expression: "user.groups.all(g, !g.startsWith('system:'))"}}
			j.ClaimMappings.Groups = PrefixedClaimOrExpression{Claim: "g", Prefix: &none}
		}, map[string]any{"g": []string{"a", "system:masters"}}, request.User{},
			"oidc: error evaluating user info validation rule: validation expression 'user.groups.all(g, !g.startsWith('system:'))' failed"},
		"costs too much": {func(j *JWT) {
			j.ClaimValidationRules = []ClaimValidationRule{{
				Expression: "dyn(claims.l).all(a, dyn(claims.l).all(b, dyn(claims.l).all(c, a + b + c != 'x')))"}}
		}, map[string]any{"l": strings.Split(strings.Repeat("abc ", 500), " ")}, request.User{}, "cost"},
	} {
		j := basic(p)
		j.ClaimMappings.Username = name
		tt.change(&j)
		g := generationOf(t, j)
		i := g.issuers[p.URL]
		payload, err := json.Marshal(good(p, tt.claims))
		if err != nil {
			t.Fatal(err)
		}
		c, err := parseClaims(payload)
		if err != nil {
			t.Fatal(err)
		}
		user, err := i.user(t.Context(), c)
		switch {
		case tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)):
			t.Errorf("%s: %v, %v, want %q", title, user, err, tt.problem)
		case tt.problem == "" && (err != nil || !reflect.DeepEqual(*user, tt.user)):
			t.Errorf("%s: %+v, %v, want %+v", title, user, err, tt.user)
		}
	}
}

// generationOf compiles a configuration.
func generationOf(t testing.TB, jwt ...JWT) *generation {
	t.Helper()
	c, err := Parse(file(t, jwt...))
	if err != nil {
		t.Fatal(err)
	}
	a := newAuthenticator(Options{})
	compiled, err := a.check(c)
	if err != nil {
		t.Fatal(err)
	}
	g, err := a.generation(c, compiled)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestReload: a good file replaces the one before, with all that was cached; a bad file, and one whose issuer is dead,
// does not.
func TestReload(t *testing.T) {
	t.Parallel()
	key := oidctest.NewECDSA(t, "one")
	p, q := oidctest.New(t, key), oidctest.New(t, key)
	log := &lines{}
	a, path := open(t, Options{Log: slog.New(slog.NewTextHandler(log, nil))}, basic(p))
	found(t, a)
	token := key.Sign(t, good(p, nil))
	in := func(token string) bool {
		user, _, err := a.AuthenticateToken(t.Context(), token, nil)
		return err == nil && user != nil
	}
	if !in(token) {
		t.Fatal("the token is not good")
	}
	write(t, path, []byte("kind: nothing"))
	eventually(t, func() bool { return log.has("is not taken over") })
	if !in(token) {
		t.Error("a bad file took the good one away")
	}
	dead := oidctest.New(t, key)
	dead.Answer(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) })
	write(t, path, file(t, basic(dead), basic(q)))
	eventually(t, func() bool { return log.has("is not found") })
	if !in(token) || in(key.Sign(t, good(q, nil))) {
		t.Error("a file with a dead issuer is in force")
	}
	write(t, path, file(t, basic(q)))
	eventually(t, func() bool { return in(key.Sign(t, good(q, nil))) })
	if in(token) {
		t.Error("the issuer is removed, and its cached token is good")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return log.has("no such file") })
	if !in(key.Sign(t, good(q, map[string]any{"sub": "joe"}))) {
		t.Error("a missing file took the good one away")
	}
	write(t, path, file(t, basic(p)))
	eventually(t, func() bool { return in(token) })
	if n := len(a.current.Load().issuers); n != 1 {
		t.Errorf("%d issuers", n)
	}
}

// FuzzToken: no token makes the authenticator fail in another way than with an error, and none but those of the key is
// good.
func FuzzToken(f *testing.F) {
	key := oidctest.NewECDSA(f, "one")
	p := oidctest.New(f, key)
	g := generationOf(f, basic(p))
	i := g.issuers[p.URL]
	if err := i.find(f.Context()); err != nil {
		f.Fatal(err)
	}
	token := key.Sign(f, good(p, nil))
	f.Add(token)
	f.Add("..")
	f.Add(forge(map[string]any{"alg": "none"}, good(p, nil), func(string) []byte { return nil }))
	f.Add(token[:len(token)/2])
	f.Fuzz(func(t *testing.T, changed string) {
		i.found.Load().keys.begun = time.Now() // no fetch
		user, _, err := g.AuthenticateToken(t.Context(), changed, nil)
		if user != nil && err == nil && !sameSignature(changed, token) {
			t.Errorf("%s is good", changed)
		}
	})
}

// sameSignature reports whether two tokens have the same content: base64 may spell the last byte in several ways.
func sameSignature(a, b string) bool {
	return a[:strings.LastIndex(a, ".")] == b[:strings.LastIndex(b, ".")]
}

// clock is a time that the test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Now()} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// TestAnonymousFlag: a file says nothing about anonymous requests beside the flag.
func TestAnonymousFlag(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "authn.yaml")
	write(t, path, append(file(t), []byte("anonymous: {enabled: true}\n")...))
	if _, err := Open(path, Options{}); err != nil {
		t.Error(err)
	}
	if _, err := Open(path, Options{AnonymousFlag: true}); err == nil ||
		!strings.Contains(err.Error(), "anonymous: Forbidden: --anonymous-auth flag cannot be set") {
		t.Error(err)
	}
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), s)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true,
		func(context.Context) (bool, error) { return holds(), nil }); err != nil {
		t.Fatal("the condition does not hold within a minute")
	}
}
