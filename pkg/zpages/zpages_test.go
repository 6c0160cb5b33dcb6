package zpages_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"bonsai/pkg/zpages"
)

func handlers() map[string]http.Handler {
	started := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	c := zpages.Config{Component: "kube-x", Version: "1.36.3", Emulation: "1.36", GoVersion: "go1.26", Started: started,
		Now: func() time.Time {
			return started.Add(25*time.Hour + 2*time.Minute + 3*time.Second + 999*time.Millisecond)
		}, Flags: map[string]string{"v": "2", "bind-address": "::"}}
	return zpages.Handlers(c.Listing([]string{"/metrics", "/healthz/ping", "/healthz", "/", "/debug/pprof/"}))
}

const warning = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n"

// The answers of Kubernetes 1.36.3, except the delimiter, which it draws at random to keep programs from reading the
// text.
func TestPages(t *testing.T) {
	t.Parallel()
	const notAcceptable = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"only the following media types are accepted: application/json, application/yaml, text/plain","reason":"NotAcceptable","code":406}` + "\n"
	status := "\nkube-x statusz\n" + warning + `
Started: Fri Jan  2 03:04:05 UTC 2026
Up: 25 hr 02 min 03 sec
Go version: go1.26
Binary version: 1.36.3
Emulation version: 1.36
Paths: /flagz /healthz /metrics /statusz
`
	flags := "\nkube-x flagz\n" + warning + "bind-address: ::\nv: 2\n"
	statusz := func(version string) string {
		return `{"kind":"Statusz","apiVersion":"config.k8s.io/` + version +
			`","metadata":{"name":"kube-x"},"startTime":"2026-01-02T03:04:05Z","uptimeSeconds":90123,"goVersion":"go1.26","binaryVersion":"1.36.3","emulationVersion":"1.36","paths":["/flagz","/healthz","/metrics","/statusz"]}` + "\n"
	}
	const flagz = `{"kind":"Flagz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"kube-x"},"flags":{"bind-address":"::","v":"2"}}` + "\n"
	for _, c := range []struct {
		path, accept string
		code         int
		kind, body   string
		deprecated   bool
	}{
		{path: "/statusz", code: 200, kind: "text/plain; charset=utf-8", body: status},
		{path: "/statusz", accept: "*/*", code: 200, kind: "text/plain; charset=utf-8", body: status},
		{path: "/statusz", accept: "application/json;as=Statusz;v=v9;g=config.k8s.io,text/plain", code: 200,
			kind: "text/plain; charset=utf-8", body: status},
		{path: "/statusz", accept: "application/json;as=Statusz;v=v1beta1;g=config.k8s.io", code: 200,
			kind: "application/json;g=config.k8s.io;v=v1beta1;as=Statusz", body: statusz("v1beta1")},
		{path: "/statusz", accept: "application/json;as=Statusz;v=v1alpha1;g=config.k8s.io", code: 200,
			kind: "application/json;g=config.k8s.io;v=v1alpha1;as=Statusz", body: statusz("v1alpha1"),
			deprecated: true},
		{path: "/statusz", accept: "text/plain;q=0.1,application/json;as=Statusz;v=v1beta1;g=config.k8s.io", code: 200,
			kind: "application/json;g=config.k8s.io;v=v1beta1;as=Statusz", body: statusz("v1beta1")},
		{path: "/flagz", code: 200, kind: "text/plain; charset=utf-8", body: flags},
		{path: "/flagz", accept: "application/json;as=Flagz;v=v1beta1;g=config.k8s.io", code: 200,
			kind: "application/json;g=config.k8s.io;v=v1beta1;as=Flagz", body: flagz},
		{path: "/flagz", accept: "application/yaml;as=Flagz;v=v1beta1;g=config.k8s.io", code: 200,
			kind: "application/yaml;g=config.k8s.io;v=v1beta1;as=Flagz",
			body: "apiVersion: config.k8s.io/v1beta1\nflags:\n  bind-address: '::'\n  v: \"2\"\nkind: Flagz\nmetadata:\n  name: kube-x\n"},
		{path: "/statusz", accept: "application/json", code: 406, kind: "application/json", body: notAcceptable},
		{path: "/statusz", accept: "application/json;as=Flagz;v=v1beta1;g=config.k8s.io", code: 406,
			kind: "application/json", body: notAcceptable},
		{path: "/statusz", accept: "text/plain;as=Statusz;v=v1beta1;g=config.k8s.io", code: 406,
			kind: "application/json", body: notAcceptable},
		{path: "/statusz", accept: "application/vnd.kubernetes.protobuf;as=Statusz;v=v1beta1;g=config.k8s.io",
			code: 406, kind: "application/json", body: notAcceptable},
		{path: "/flagz", accept: "text/html", code: 406, kind: "application/json", body: notAcceptable},
		{path: "/flagz", accept: "garbage,;,text/plain;q=NaN", code: 406, kind: "application/json",
			body: notAcceptable},
	} {
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		if c.accept != "" {
			r.Header.Set("Accept", c.accept)
		}
		w := httptest.NewRecorder()
		handlers()[c.path].ServeHTTP(w, r)
		if w.Code != c.code || w.Header().Get("Content-Type") != c.kind ||
			w.Header().Get("Cache-Control") != "no-cache, private" {
			t.Errorf("%s %q: %d %v", c.path, c.accept, w.Code, w.Header())
		}
		if diff := cmp.Diff(c.body, w.Body.String()); diff != "" {
			t.Errorf("%s %q: %s", c.path, c.accept, diff)
		}
		if got := w.Header().Get(
			"Warning"); (got == `299 - "This version of the statusz endpoint is deprecated. Please use a newer version."`) != c.deprecated {
			t.Errorf("%s %q: warning %q", c.path, c.accept, got)
		}
	}
}

// Users of curl get indented objects.
func TestPretty(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]bool{"curl/8.0": true, "Mozilla/5.0 (X11)": true, "Go-http-client/2.0": false} {
		r := httptest.NewRequest(http.MethodGet, "/flagz", nil)
		r.Header.Set("Accept", "application/json;as=Flagz;v=v1beta1;g=config.k8s.io")
		r.Header.Set("User-Agent", agent)
		w := httptest.NewRecorder()
		handlers()["/flagz"].ServeHTTP(w, r)
		if got := strings.Contains(w.Body.String(), "\n  \"flags\": {\n"); got != want {
			t.Errorf("%s: %s", agent, w.Body)
		}
	}
}

// Flags have the values of all flags, defaults and hidden ones too, but no password of a URL.
func TestFlags(t *testing.T) {
	t.Parallel()
	set := pflag.NewFlagSet("x", pflag.ContinueOnError)
	set.StringSlice("etcd-servers", nil, "")
	set.String("proxy", "", "")
	set.String("file", "/etc/pass:word@x", "")
	set.Bool("hidden", true, "")
	if err := set.MarkHidden("hidden"); err != nil {
		t.Fatal(err)
	}
	if err := set.Parse([]string{"--etcd-servers=https://root:s3cr:et@etcd:2379,https://b:2379",
		"--proxy=socks5://u:p@ss@h/?a=b:c@d"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"etcd-servers": "[https://root:xxxxx@etcd:2379,https://b:2379]",
		"proxy": "socks5://u:xxxxx@h/?a=b:c@d", "file": "/etc/pass:word@x", "hidden": "true"}
	if diff := cmp.Diff(want, zpages.Flags(set)); diff != "" {
		t.Error(diff)
	}
}
