package tokenreview

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/request"
)

// webhook serves h and returns an Authenticator that asks it.
func webhook(t *testing.T, version string, h http.HandlerFunc) *Authenticator {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	config := clientcmdapi.Config{CurrentContext: "c",
		Contexts:  map[string]*clientcmdapi.Context{"c": {Cluster: "w", AuthInfo: "s"}},
		Clusters:  map[string]*clientcmdapi.Cluster{"w": {Server: s.URL + "/review", CertificateAuthorityData: ca}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"s": {Token: "server"}}}
	file := filepath.Join(t.TempDir(), "webhook.kubeconfig")
	if err := clientcmd.WriteToFile(config, file); err != nil {
		t.Fatal(err)
	}
	a, err := New(Config{File: file, Version: version, APIAudiences: []string{"api"}, FirstWait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// status answers with a status, in the version of the question.
func status(t *testing.T, s authenticationv1.TokenReviewStatus) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		review.Status = s
		_ = json.NewEncoder(w).Encode(&review)
	}
}

// TestReview: what the webhook gets, and what the server makes of its answers.
func TestReview(t *testing.T) {
	t.Parallel()
	jane := authenticationv1.TokenReviewStatus{Authenticated: true,
		User: authenticationv1.UserInfo{Username: "jane", UID: "7", Groups: []string{"a"},
			Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}}
	user := &request.User{Name: "jane", UID: "7", Groups: []string{"a"}, Extra: map[string][]string{"k": {"v"}}}
	with := func(change func(s *authenticationv1.TokenReviewStatus)) http.HandlerFunc {
		s := jane
		change(&s)
		return status(t, s)
	}
	text := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	type want struct {
		user      *request.User
		audiences []string
		problem   string
	}
	unknown := want{}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		asked  []string
		want
	}{
		"known":              {status(t, jane), nil, want{user, []string{"api"}, ""}},
		"known, for another": {status(t, jane), []string{"other"}, unknown},
		"known, for both": {with(func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"x", "other"} }),
			[]string{"other", "api"}, want{user, []string{"other"}, ""}},
		"known, of other audiences": {with(func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"x"} }),
			nil, unknown},
		"unknown": {status(t, authenticationv1.TokenReviewStatus{}), nil, unknown},
		"unknown, but names a user": {with(func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false }),
			nil, unknown},
		"bad": {status(t, authenticationv1.TokenReviewStatus{Error: "is bad"}), nil, want{problem: "is bad"}},
		"nobody": {with(func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "" }), nil,
			want{problem: "names no user"}},
		"no JSON": {text(200, "<html>"), nil, want{problem: "no TokenReview"}},
		"another kind": {text(200, `{"kind":"Status","apiVersion":"v1","status":{"authenticated":true}}`), nil,
			want{problem: `of kind "Status"`}},
		"another version": {text(200, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1",`+
			`"status":{"authenticated":true,"user":{"username":"x"}}}`), nil,
			want{problem: "not a TokenReview of authentication.k8s.io/v1"}},
		"huge":               {text(200, strings.Repeat(" ", 1<<20+1)), nil, want{problem: "more than"}},
		"empty":              {text(200, ""), nil, want{problem: "no TokenReview"}},
		"refuses the server": {text(403, "no"), nil, want{problem: "403"}},
		"fails":              {text(500, "no"), nil, want{problem: "500"}},
		"sends the token to another": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/x", http.StatusTemporaryRedirect)
		}, nil, want{problem: "307"}},
	} {
		a := webhook(t, "v1", tt.answer)
		got, audiences, err := a.AuthenticateToken(t.Context(), "secret", tt.asked)
		if !reflect.DeepEqual(got, tt.user) || !reflect.DeepEqual(audiences, tt.audiences) ||
			(err != nil) != (tt.problem != "") {
			t.Errorf("%s: %+v, %q, %v", name, got, audiences, err)
		}
		if err != nil && (!strings.Contains(err.Error(), tt.problem) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHostileWords: an error holds few words of the webhook, and no control characters.
func TestHostileWords(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x\\u001b[2J", 1<<13)
	for _, answer := range []string{
		`{"kind":"` + long + `"}`,
		`{"kind":"TokenReview","apiVersion":"` + long + `"}`,
		`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"error":"` + long + `"}}`,
		`{"metadata":{"creationTimestamp":"` + long + `"}}`,
		`{"metadata":{"generation":"` + long + `"}}`,
		`{"metadata":{"generation":` + strings.Repeat("1", 1<<16) + `}}`,
	} {
		a := webhook(t, "v1", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
		_, _, err := a.AuthenticateToken(t.Context(), "x", nil)
		if err == nil || len(err.Error()) > 1200 || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%.60s: got %.2000q", answer, err)
		}
	}
}

// TestQuestion: the webhook gets a TokenReview of the version, at its path, with the server's credentials.
func TestQuestion(t *testing.T) {
	t.Parallel()
	for _, version := range Versions() {
		a := webhook(t, version, func(w http.ResponseWriter, r *http.Request) {
			var review map[string]any
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				t.Error(err)
			}
			if r.Method != "POST" || r.URL.RequestURI() != "/review" ||
				r.Header.Get("Authorization") != "Bearer server" || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s, %v", r.Method, r.URL, r.Header)
			}
			if review["apiVersion"] != "authentication.k8s.io/"+version || review["kind"] != "TokenReview" ||
				!reflect.DeepEqual(review["spec"], map[string]any{"token": "secret", "audiences": []any{"api"}}) {
				t.Errorf("%v", review)
			}
			review["status"] = map[string]any{"authenticated": true, "user": map[string]any{"username": "jane"}}
			_ = json.NewEncoder(w).Encode(review)
		})
		if u, _, err := a.AuthenticateToken(t.Context(), "secret", nil); err != nil || u == nil || u.Name != "jane" {
			t.Errorf("%s: %v, %v", version, u, err)
		}
	}
}

// TestCached: nobody gets the answer to another's token, nor that to another question about it.
func TestCached(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	cached := authn.CacheRefusals(webhook(t, "v1", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		name, ok := strings.CutPrefix(review.Spec.Token, "token-")
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: ok, Audiences: review.Spec.Audiences,
			User: authenticationv1.UserInfo{Username: name}}
		_ = json.NewEncoder(w).Encode(&review)
	}), time.Minute, 100, nil)
	for _, tt := range []struct {
		token     string
		audiences []string
		user      string
		asked     int32
	}{
		{"token-a", nil, "a", 1}, {"token-b", nil, "b", 2}, {"token-a", nil, "a", 2}, {"token-b", nil, "b", 2},
		{"token-a", []string{"x"}, "a", 3}, {"token-a", []string{"x", "y"}, "a", 4},
		{"token-a", []string{"xy"}, "a", 5},
		{"token-ax", nil, "ax", 6}, {"other", nil, "", 7}, {"other", nil, "", 7}, {"token-", nil, "", 8},
	} {
		u, _, err := cached.AuthenticateToken(t.Context(), tt.token, tt.audiences)
		if (u == nil) != (tt.user == "") || u != nil && u.Name != tt.user || err != nil && tt.user != "" ||
			asked.Load() != tt.asked {
			t.Errorf("%s: %v, %v, asked %d times, want %d", tt.token, u, err, asked.Load(), tt.asked)
		}
	}
}

// TestBadFile: a file that names no webhook ends the start.
func TestBadFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"", "{", "apiVersion: v1\nkind: Config\n",
		"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: x, user: y}}]\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{File: file, Version: "v1"}); err == nil {
			t.Errorf("%q is a webhook", text)
		}
	}
	if _, err := New(Config{File: file + "x", Version: "v1"}); err == nil || !strings.Contains(err.Error(), file+"x") {
		t.Errorf("no file: %v", err)
	}
}

// TestHugeToken: nobody sends megabytes through the server to the webhook.
func TestHugeToken(t *testing.T) {
	t.Parallel()
	a := webhook(t, "v1", func(http.ResponseWriter, *http.Request) { t.Error("the webhook is asked") })
	if _, _, err := a.AuthenticateToken(t.Context(), string(bytes.Repeat([]byte("x"), maxToken+1)), nil); err == nil {
		t.Error("a huge token is no error")
	}
}
