package webhook_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/apiserver/webhook"
	"bonsai/pkg/apiserver/webhook/webhooktest"
)

func directory(t *testing.T, users string) (webhook.Directory, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\nusers:\n"+users), 0o600); err != nil {
		t.Fatal(err)
	}
	return webhook.LoadDirectory(file)
}

// A webhook is shown the credentials of the user that is called like its host, and no other.
func TestCredentials(t *testing.T) {
	t.Parallel()
	var got string
	s := webhooktest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		io.WriteString(w, "answer") //nolint:errcheck // the client sees it
	}), "hook.ns.svc", "hook.other.svc", "hook.third.svc")
	_, port, _ := strings.Cut(s.Addr(), ":")
	all, err := directory(t, `- {name: "127.0.0.1:`+port+`", user: {token: url}}
- {name: hook.ns.svc, user: {token: service}}
- {name: "hook.ns.svc:8443", user: {username: u, password: p}}
- {name: "*.other.svc", user: {token: wild}}
- {name: "*.svc", user: {token: wilder}}
`)
	if err != nil {
		t.Fatal(err)
	}
	c := webhook.New(webhook.Config{Resolver: webhooktest.Resolve{s.Addr()}})
	service := func(ns string, port int32) webhook.Hook {
		return webhook.Hook{Service: &webhook.Service{Namespace: ns, Name: "hook", Port: port}}
	}
	for _, x := range []struct {
		to   webhook.Hook
		want string
	}{
		{webhook.Hook{URL: s.URL}, "Bearer url"}, {service("ns", 0), "Bearer service"},
		{service("ns", 443), "Bearer service"}, {service("ns", 8443), "Basic dTpw"},
		{service("other", 0), "Bearer wild"}, {service("third", 0), "Bearer wilder"},
		{webhook.Hook{URL: strings.Replace(s.URL, "127.0.0.1", "localhost", 1)}, ""},
	} {
		x.to.CABundle, x.to.Credentials = s.CABundle, all.For(&x.to)
		if _, err := c.Call(t.Context(), &x.to, nil, 10*time.Second, limit); err != nil || got != x.want {
			t.Errorf("%+v: shown %q, want %q, %v", x.to, got, x.want, err)
		}
	}
	if all, err = directory(t, `- {name: "*", user: {token: any}}`); err != nil ||
		all.For(&webhook.Hook{URL: s.URL}) == nil {
		t.Errorf("for all: %v", err)
	}
}

func TestBadCredentials(t *testing.T) {
	t.Parallel()
	for users, want := range map[string]string{
		`- {name: a, user: {exec: {command: x, apiVersion: client.authentication.k8s.io/v1}}}`: "users[a]: only certificates, tokens and passwords",
		`- {name: a, user: {client-certificate: /none, client-key: /none}}`:                    "users[a]: open /none",
		`- {name: a, user: {client-certificate-data: eA==}}`:                                   "users[a]: tls: ",
	} {
		if _, err := directory(t, users); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
