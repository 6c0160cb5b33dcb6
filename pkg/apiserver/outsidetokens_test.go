package apiserver_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/authn/oidc/oidctest"
)

// tokenWebhook serves a webhook that knows "webhook-NAME", and returns its kubeconfig.
func tokenWebhook(t *testing.T) string {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		if strings.HasPrefix(review.Spec.Token, "audit") {
			t.Errorf("the webhook sees a token of the server's own")
		}
		name, ok := strings.CutPrefix(review.Spec.Token, "webhook-")
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: ok,
			User: authenticationv1.UserInfo{Username: "w:" + name, Groups: []string{"hooked"}}}
		_ = json.NewEncoder(w).Encode(&review)
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "webhook.kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{CurrentContext: "c",
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "w"}},
		Clusters: map[string]*clientcmdapi.Cluster{"w": {Server: s.URL, CertificateAuthorityData: pem.EncodeToMemory(
			&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})}}}, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestOutsideTokens: tokens of OpenID providers and of a webhook are those of the users that the configuration says,
// beside the server's own; a dead provider keeps nobody else out; a changed file holds at once, also for the paths of
// anonymous requests.
func TestOutsideTokens(t *testing.T) {
	t.Parallel()
	key := oidctest.NewECDSA(t, "one")
	p, dead := oidctest.New(t, key), oidctest.New(t, key)
	dead.Answer(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) })
	jwt := func(p *oidctest.Provider) map[string]any {
		return map[string]any{
			"issuer": map[string]any{"url": p.URL, "certificateAuthority": p.Authority, "audiences": []string{"me"}},
			"claimMappings": map[string]any{"username": map[string]any{"expression": "'o:' + claims.sub"},
				"groups": map[string]any{"claim": "groups", "prefix": "o:"}},
			"userValidationRules": []any{map[string]any{"expression": "!user.username.endsWith('root')",
				"message": "no roots"}}}
	}
	file := filepath.Join(t.TempDir(), "authn.yaml")
	configure := func(anonymous map[string]any, issuers ...map[string]any) {
		t.Helper()
		text, err := yaml.Marshal(map[string]any{"apiVersion": "apiserver.config.k8s.io/v1",
			"kind": "AuthenticationConfiguration", "jwt": issuers, "anonymous": anonymous})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file+".new", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	paths := func(all ...string) map[string]any {
		var conditions []any
		for _, one := range all {
			conditions = append(conditions, map[string]any{"path": one})
		}
		return map[string]any{"enabled": true, "conditions": conditions}
	}
	configure(paths("/version", "/openid/v1/jwks"), jwt(dead), jwt(p))
	url := start(t, func(c *assemble.Config) {
		withCountedParts(t, c, nil, func(o *assemble.Options) {
			o.Authentication.Anonymous = true
			o.Authentication.ConfigFile = file
			o.Authentication.Webhook = assemble.TokenWebhook{ConfigFile: tokenWebhook(t), Version: "v1",
				CacheTTL: time.Minute}
		})
	})
	trust := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // its own server
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}
	send := func(token, method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	who := func(token string) string {
		t.Helper()
		code, text := send(token, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{}`)
		var review authenticationv1.SelfSubjectReview
		if code != http.StatusCreated {
			return fmt.Sprint(code)
		}
		if err := json.Unmarshal([]byte(text), &review); err != nil {
			t.Fatal(err)
		}
		return review.Status.UserInfo.Username + " " + strings.Join(review.Status.UserInfo.Groups, " ")
	}
	token := func(p *oidctest.Provider, sub string) string {
		return key.Sign(t, map[string]any{"iss": p.URL, "aud": "me", "sub": sub, "groups": []string{"a"},
			"exp": time.Now().Add(time.Hour).Unix()})
	}
	eventually := func(token, want string) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
			func(context.Context) (bool, error) { return who(token) == want, nil }); err != nil {
			t.Fatalf("%s is not %s: %v", token, want, who(token))
		}
	}
	eventually(token(p, "jane"), "o:jane o:a system:authenticated")
	for name, tt := range map[string]struct{ token, want string }{
		"webhook":         {"webhook-joe", "w:joe hooked system:authenticated"},
		"token file":      {"auditali", "alice devs more system:authenticated"},
		"unknown":         {"nobody", "401"},
		"dead issuer":     {token(dead, "jane"), "401"},
		"refused by rule": {token(p, "root"), "401"},
		"truncated":       {token(p, "joe")[:100], "401"},
	} {
		if got := who(tt.token); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	for path, want := range map[string]int{"/version": 200, "/openid/v1/jwks": 403, "/healthz": 401, "/version/": 401,
		"/api": 401, "/": 401} {
		if code, _ := send("", "GET", path, ""); code != want {
			t.Errorf("anonymous %s: %d, want %d", path, code, want)
		}
	}
	review := func(token string) authenticationv1.TokenReviewStatus {
		t.Helper()
		body, err := json.Marshal(map[string]any{"spec": map[string]any{"token": token}})
		if err != nil {
			t.Fatal(err)
		}
		code, text := send("auditadm", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", string(body))
		var review authenticationv1.TokenReview
		if err := json.Unmarshal([]byte(text), &review); err != nil || code != http.StatusCreated {
			t.Fatalf("%d %s: %v", code, text, err)
		}
		return review.Status
	}
	good := review(token(p, "jane"))
	if !good.Authenticated || good.User.Username != "o:jane" ||
		!reflect.DeepEqual(good.Audiences, []string{"https://kubernetes.default.svc"}) {
		t.Errorf("%+v", good)
	}
	bad := review(token(p, "root"))
	if bad.Authenticated || !strings.Contains(bad.Error, "no roots") {
		t.Errorf("%+v", bad)
	}
	dead.Answer(nil)
	eventually(token(dead, "jane"), "o:jane o:a system:authenticated")
	configure(map[string]any{"enabled": false}, jwt(dead))
	eventually(token(p, "jane"), "401")
	if code, _ := send("", "GET", "/version", ""); code != 401 {
		t.Errorf("anonymous requests are off: %d", code)
	}
}
