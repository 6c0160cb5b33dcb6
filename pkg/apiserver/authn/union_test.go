package authn

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/request"
)

type fake func(*http.Request) (*request.User, error)

func (f fake) Authenticate(r *http.Request) (*request.User, error) { return f(r) }

func knows(name string) Authenticator {
	return fake(func(*http.Request) (*request.User, error) { return &request.User{Name: name}, nil })
}

func objects(msg string) Authenticator {
	return fake(func(*http.Request) (*request.User, error) { return nil, errors.New(msg) })
}

func silent() Authenticator {
	return fake(func(*http.Request) (*request.User, error) { return nil, nil })
}

func TestUnion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a          Authenticator
		user, errs string
	}{
		"the first that knows wins":            {Union(silent(), knows("a"), knows("b")), "a", ""},
		"an objection does not stop":           {Union(objects("x"), knows("b")), "b", ""},
		"all objections together":              {Union(objects("x"), silent(), objects("y")), "", "x\ny"},
		"nobody":                               {Union(silent()), "", ""},
		"no credential is anonymous":           {OrElse(Union(silent()), knows("anon")), "anon", ""},
		"a bad credential is not anonymous":    {OrElse(Union(objects("x")), knows("anon")), "", "x"},
		"a known caller is not anonymous":      {OrElse(knows("a"), knows("anon")), "a", ""},
		"the group is added to those we know":  {WithAuthenticatedGroup(knows("a")), "a", ""},
		"and not when there is nobody to join": {WithAuthenticatedGroup(silent()), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, err := c.a.Authenticate(httptest.NewRequest("GET", "/", nil))
			got, gotErr := "", ""
			if u != nil {
				got = u.Name
			}
			if err != nil {
				gotErr = err.Error()
			}
			if got != c.user || gotErr != c.errs {
				t.Errorf("got %q, %q; want %q, %q", got, gotErr, c.user, c.errs)
			}
		})
	}
}

func TestAddAuthenticatedGroupLeavesTheSharedUserAlone(t *testing.T) {
	t.Parallel()
	u := &request.User{Name: "a", Groups: make([]string, 1, 4)}
	if got := addAuthenticatedGroup(u); !got.InGroup(request.GroupAuthenticated) ||
		u.InGroup(request.GroupAuthenticated) {
		t.Error("want a new user with the group and the old one without")
	}
	if u.Groups[:2][1] != "" {
		t.Error("the old user's array was written to")
	}
}

// tokenTable knows tokens and counts how often it is asked.
type tokenTable struct {
	users map[string]*request.User
	asked int
}

func (t *tokenTable) AuthenticateToken(_ context.Context, token string, auds []string) (*request.User, []string,
	error) {
	t.asked++
	if strings.HasPrefix(token, "bad") {
		return nil, nil, errors.New("is bad")
	}
	return t.users[token], auds, nil
}

func TestBearer(t *testing.T) {
	t.Parallel()
	ws := func(token string, more ...string) http.Header {
		p := append([]string{protocolPrefix + base64.RawURLEncoding.EncodeToString([]byte(token))}, more...)
		return http.Header{"Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {strings.Join(p, ", ")}}
	}
	for name, c := range map[string]struct {
		h       http.Header
		user    string
		wantErr bool
	}{
		"none":             {http.Header{}, "", false},
		"good":             {http.Header{"Authorization": {"Bearer secret"}}, "alice", false},
		"any case":         {http.Header{"Authorization": {"bearer secret "}}, "alice", false},
		"extra space":      {http.Header{"Authorization": {"Bearer  secret"}}, "", false},
		"unknown":          {http.Header{"Authorization": {"Bearer other"}}, "", true},
		"bad":              {http.Header{"Authorization": {"Bearer bad"}}, "", true},
		"another scheme":   {http.Header{"Authorization": {"Basic secret"}}, "", false},
		"no token":         {http.Header{"Authorization": {"Bearer "}}, "", false},
		"websocket":        {ws("secret", "v4.channel.k8s.io"), "alice", false},
		"websocket, alone": {ws("secret"), "", true},
		"websocket, not encoded": {
			http.Header{"Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {protocolPrefix + "%%, x"}}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest("GET", "/", nil)
			r.Header = c.h
			u, err := Bearer(&tokenTable{users: map[string]*request.User{"secret": {Name: "alice"}}}).Authenticate(r)
			if (err != nil) != c.wantErr || (u != nil) != (c.user != "") {
				t.Fatalf("got %v, %v", u, err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes the token: %v", err)
			}
			if strings.HasPrefix(name, "websocket") && u != nil &&
				r.Header.Get("Sec-WebSocket-Protocol") != "v4.channel.k8s.io" {
				t.Errorf("the token's protocol is still there: %q", r.Header)
			}
		})
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	table := &tokenTable{users: map[string]*request.User{"a": {Name: "a"}, "b": {Name: "b"}, "c": {Name: "c"}}}
	c := Cache(table, 10*time.Second, 2, nil).(*cache)
	c.now = func() time.Time { return now }
	ask := func(token string, auds ...string) {
		t.Helper()
		if u, _, err := c.AuthenticateToken(context.Background(), token, auds); err != nil || u == nil ||
			u.Name != token {
			t.Fatalf("%s: got %v, %v", token, u, err)
		}
	}
	steps := []struct {
		do    func()
		asked int
		why   string
	}{
		{func() { ask("a"); ask("a") }, 1, "remembered"},
		{func() { ask("a", "other") }, 2, "other audiences are another question"},
		{func() { now = now.Add(11 * time.Second); ask("a") }, 3, "forgotten after its time"},
		{func() { ask("b"); ask("c"); ask("a") }, 6, "the oldest made room"},
		{func() { c.AuthenticateToken(context.Background(), "bad", nil) }, 7, "refused"},
		{func() { c.AuthenticateToken(context.Background(), "bad", nil) }, 8, "refusals are not remembered"},
	}
	for _, s := range steps {
		s.do()
		if table.asked != s.asked {
			t.Fatalf("%s: asked %d times, want %d", s.why, table.asked, s.asked)
		}
		if n := len(c.known.entries); n > 2 || c.known.order.Len() != n {
			t.Fatalf("%s: %d entries, %d in order", s.why, n, c.known.order.Len())
		}
	}
}

// TestCacheRefusals: a refusal is remembered for its time, beside and not in place of what is known; an error is not.
func TestCacheRefusals(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	table := &tokenTable{users: map[string]*request.User{"a": {Name: "a"}}}
	r := prometheus.NewPedanticRegistry()
	c := newCache(table, 10*time.Second, 2, NewCacheMetrics(r))
	c.refused = newEntries(2)
	c.now = func() time.Time { return now }
	for _, s := range []struct {
		token string
		later time.Duration
		asked int
		why   string
	}{
		{"a", 0, 1, "new"}, {"x", 0, 2, "new"}, {"x", 0, 2, "a refusal is remembered"}, {"y", 0, 3, "new"},
		{"z", 0, 4, "new"}, {"x", 0, 5, "the oldest refusal made room"},
		{"a", 0, 5, "refusals push out none that is known"},
		{"x", 11 * time.Second, 6, "forgotten after its time"}, {"bad", 0, 7, "an error"}, {"bad", 0, 8, "an error"},
	} {
		now = now.Add(s.later)
		u, _, err := c.AuthenticateToken(t.Context(), s.token, nil)
		if (u != nil) != (s.token == "a") || (err != nil) != (s.token == "bad") || table.asked != s.asked {
			t.Fatalf("%s, %s: %v, %v, asked %d times, want %d", s.token, s.why, u, err, table.asked, s.asked)
		}
	}
	for name, want := range map[string]float64{"request_total hit": 2, "request_total miss": 8, "fetch_total ok": 6,
		"fetch_total error": 2, "active_fetch_count in_flight": 0, "active_fetch_count blocked": 0} {
		if got := cacheCount(t, r, name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// cacheCount is the value of a metric of the caches with a status.
func cacheCount(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	name, status, _ := strings.Cut(name, " ")
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "authentication_token_cache_"+name && m.GetLabel()[0].GetValue() == status {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return -1
}

// TestCacheMetrics: a cache counts tokens of its own kind alone; others are counted where they are known.
func TestCacheMetrics(t *testing.T) {
	t.Parallel()
	table := &tokenTable{users: map[string]*request.User{"a": {Name: "a"}}}
	r := prometheus.NewPedanticRegistry()
	c := Cache(table, time.Hour, 2, NewCacheMetrics(r))
	for _, token := range []string{"a", "a", "x", "bad"} {
		c.AuthenticateToken(t.Context(), token, nil) //nolint:errcheck // what it counts is the test
	}
	for name, want := range map[string]float64{"request_total hit": 1, "request_total miss": 2, "fetch_total ok": 1,
		"fetch_total error": 1, "active_fetch_count in_flight": 0} {
		if got := cacheCount(t, r, name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestCacheBytes: users that their webhook makes huge hold no more memory than the cache may have, and push one another
// out.
func TestCacheBytes(t *testing.T) {
	t.Parallel()
	const each = 1 << 20
	table := &tokenTable{users: map[string]*request.User{}}
	for i := range 4 * maxCacheBytes / each {
		table.users[strconv.Itoa(i)] = &request.User{Name: "u", Groups: []string{strings.Repeat("g", each/2)},
			Extra: map[string][]string{"k": {strings.Repeat("v", each/2)}}}
	}
	c := CacheRefusals(table, time.Hour, 4096, nil).(*cache)
	for token := range table.users {
		if u, _, err := c.AuthenticateToken(t.Context(), token, nil); u == nil || err != nil {
			t.Fatal(err)
		}
		if c.known.bytes > maxCacheBytes || c.known.bytes < c.known.order.Len()*each {
			t.Fatalf("%d bytes of %d users", c.known.bytes, c.known.order.Len())
		}
	}
	if n := c.known.order.Len(); n < maxCacheBytes/each/2 || n != len(c.known.entries) {
		t.Errorf("%d users are remembered", n)
	}
	for c.known.order.Len() > 0 {
		c.known.removeLocked(c.known.order.Back())
	}
	if c.known.bytes != 0 {
		t.Errorf("an empty cache has %d bytes", c.known.bytes)
	}
}

// FuzzBearer: no header makes the parser fail in another way than with an error, and a token comes out as it was sent:
// without spaces, from one header only, and never in an error or in what the server chooses a sub-protocol from.
func FuzzBearer(f *testing.F) {
	for _, h := range []string{"Bearer a", "bearer  a ", "Bearer", "Bearer a b", "Basic a", "\tBearer\ta", "Bearer \xff"} {
		f.Add(h, "base64url.bearer.authorization.k8s.io.YQ, v4.channel.k8s.io")
	}
	f.Add("", "base64url.bearer.authorization.k8s.io.YQ,base64url.bearer.authorization.k8s.io.YQ,x")
	f.Add("", "base64url.bearer.authorization.k8s.io.YQ==,x")
	f.Fuzz(func(t *testing.T, header, protocols string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header = http.Header{"Authorization": {header}, "Upgrade": {"websocket"},
			"Sec-Websocket-Protocol": {protocols}}
		var got string
		user, err := Bearer(tokenFunc(func(token string) *request.User {
			got = token
			return &request.User{Name: "u"}
		})).Authenticate(r)
		if user != nil && err != nil {
			t.Fatal("a user and an error")
		}
		inHeader := bearerHeader(r)
		if strings.ContainsAny(inHeader, " \t") || !strings.Contains(header, inHeader) {
			t.Errorf("%q is the token of %q", inHeader, header)
		}
		if user != nil && inHeader == "" {
			left := r.Header.Get("Sec-Websocket-Protocol")
			if strings.Contains(left, protocolPrefix) {
				t.Errorf("%q of %q are left, with the token %q", left, protocols, got)
			}
		}
	})
}

// tokenFunc knows every token.
type tokenFunc func(token string) *request.User

func (f tokenFunc) AuthenticateToken(_ context.Context, token string, _ []string) (*request.User, []string, error) {
	return f(token), nil, nil
}
