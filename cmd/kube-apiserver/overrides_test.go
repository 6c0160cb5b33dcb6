package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/apiserver/storage/etcdtest"
)

// TestOverrideFlags: wrong values end the start with the words of a real kube-apiserver v1.36.3. Of a resource that
// stays in --etcd-servers whatever the flag says, ours tells.
func TestOverrideFlags(t *testing.T) {
	t.Parallel()
	const format = "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, semicolon separated"
	const unknown = "--etcd-servers-overrides: %s: this server stores no such resource of its own"
	for value, want := range map[string]string{
		"/events": format, "/events#": format, "events#http://a": format, "/events#http://a#x": format,
		"a/b/c#http://a": format, "#http://a": format, "/events#http://a;": format,
		"/events#http://a;;http://b": format, "/#http://a": format,
		"/events#http://a,/pods": format, "": "", "/events#http://a": "", "/events#http://a;http://b": "",
		"/events#http://a,apps/deployments#http://b": "", "/*#http://a": "", "apps/*#http://a": "",
		"foo/bars#http://a": fmt.Sprintf(unknown, "foo/bars"), "/event#http://a": fmt.Sprintf(unknown, "/event"),
		"foo.example.org/*#http://a":        fmt.Sprintf(unknown, "foo.example.org/*"),
		"events.k8s.io/events#http://a":     fmt.Sprintf(unknown, "events.k8s.io/events"),
		"apiregistration.k8s.io/*#http://a": fmt.Sprintf(unknown, "apiregistration.k8s.io/*"),
		"/bindings#http://a":                fmt.Sprintf(unknown, "/bindings"),
		"authorization.k8s.io/*#http://a":   fmt.Sprintf(unknown, "authorization.k8s.io/*"),
		"apiextensions.k8s.io/customresourcedefinitions#http://a": fmt.Sprintf(unknown,
			"apiextensions.k8s.io/customresourcedefinitions"),
	} {
		o, fs := defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(fs)
		if err := fs.Parse([]string{"--etcd-servers-overrides=" + value}); err != nil {
			t.Fatal(err)
		}
		if err := o.validateOverrides(); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
}

// TestPlace: what a real kube-apiserver v1.36.3 keeps where.
func TestPlace(t *testing.T) {
	t.Parallel()
	overrides, err := parseOverrides([]string{"/secrets#http://c", "/*#http://b", "coordination.k8s.io/leases#http://c",
		"coordination.k8s.io/leases#http://b;http://c", "apps/*#http://d"})
	if err != nil {
		t.Fatal(err)
	}
	places, err := place(overrides, rows.All())
	if err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string]string{
		"secrets": "http://c", "events": "http://b", "services/specs": "http://b", "namespaces": "http://b",
		"masterleases": "http://b", "ranges": "http://b", "leases": "http://b;http://c", "deployments": "http://d",
		"controllerrevisions": "http://d", "ipaddresses": "", "endpointslices": "",
		"apiregistration.k8s.io/apiservices": "", "apiextensions.k8s.io/customresourcedefinitions": "",
	} {
		if got := strings.Join(places["/registry/"+prefix+"/"], ";"); got != want {
			t.Errorf("%s is in %q, want %q", prefix, got, want)
		}
	}
}

const event = `{"metadata": {"name": %q}, "involvedObject": {"namespace": "default"}}`

// TestOverrides: events in an etcd of their own are listed, paged, watched, encrypted and compacted there. When it is
// down, they alone are not answered, and the checks of both etcds say which.
func TestOverrides(t *testing.T) {
	t.Parallel()
	main, other := etcdtest.Start(t), etcdtest.Start(t)
	secret := filepath.Join(t.TempDir(), "encryption.yaml")
	writeFile(t, secret, "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"+
		"- resources: [events]\n  providers: [{secretbox: {keys: [{name: a, secret: "+
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=}]}}]\n")
	s := startOurs(t, "--etcd-servers="+main.Endpoint, "--etcd-servers-overrides=/events#"+other.Endpoint,
		"--encryption-provider-config="+secret, "--etcd-compaction-interval=100ms")
	const events, maps = "/api/v1/namespaces/default/events", "/api/v1/namespaces/default/configmaps"
	for n := range 5 {
		s.ask(t, http.MethodPost, maps, fmt.Sprintf(`{"metadata": {"name": "m%d"}}`, n))
	}
	for n := range 5 {
		s.ask(t, http.MethodPost, events, fmt.Sprintf(event, fmt.Sprintf("e%d", n)))
	}
	here, there := bare(t, main.Endpoint), bare(t, other.Endpoint)
	if stored(t, here, "/registry/events/default/e0") != nil ||
		stored(t, there, "/registry/configmaps/default/m0") != nil {
		t.Error("an object is in the wrong etcd")
	}
	value := stored(t, there, "/registry/events/default/e0")
	if !strings.HasPrefix(string(value), "k8s:enc:secretbox:") {
		t.Errorf("the event is stored as %.30q", value)
	}
	if got := s.names(t, events, 2); !slices.Equal(got, []string{"e0", "e1", "e2", "e3", "e4"}) {
		t.Errorf("the pages of events have %v", got)
	}
	// Both groups show the same objects, whose versions are those of their etcd.
	if got := s.names(t, "/apis/events.k8s.io/v1/namespaces/default/events", 3); len(got) != 5 {
		t.Errorf("events.k8s.io has %v", got)
	}
	var last struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal([]byte(s.ask(t, http.MethodGet, events, "")), &last); err != nil {
		t.Fatal(err)
	}
	s.ask(t, http.MethodPatch, events+"/e0", `{"reason": "Changed"}`)
	s.ask(t, http.MethodDelete, events+"/e1", "")
	changes := s.ask(t, http.MethodGet,
		events+"?watch=1&timeoutSeconds=1&resourceVersion="+last.Metadata.ResourceVersion, "")
	if !strings.Contains(changes, `"type":"MODIFIED"`) || !strings.Contains(changes, `"type":"DELETED"`) {
		t.Errorf("the watch of events saw %s", changes)
	}
	for name, etcd := range map[string]string{"--etcd-servers": main.Endpoint, "the override": other.Endpoint} {
		awaitCompaction(t, name, etcd)
	}

	other.Kill()
	s.until(t, "/readyz?verbose", func(code int, text string) bool {
		return code == http.StatusInternalServerError && strings.Contains(text, "[-]etcd-override-0 failed") &&
			strings.Contains(text, "[-]etcd-override-readiness-0 failed") && strings.Contains(text, "[+]etcd ok") &&
			strings.Contains(text, "[+]etcd-readiness ok")
	})
	if code, text, err := s.do(t.Context(), http.MethodGet, "/livez?exclude=etcd-override-0", ""); err != nil ||
		code != http.StatusOK {
		t.Errorf("/livez without the override: %d %s %v", code, text, err)
	}
	s.ask(t, http.MethodPost, maps, `{"metadata": {"name": "meanwhile"}}`)
	s.ask(t, http.MethodGet, maps, "")
	if code, text, err := s.do(t.Context(), http.MethodPost, events+"?timeout=1s",
		fmt.Sprintf(event, "lost")); err != nil || code < 500 {
		t.Errorf("an event without its etcd: %d %s %v", code, text, err)
	}
	other.Run(t)
	s.await(t, "/readyz")
	s.ask(t, http.MethodPost, events, fmt.Sprintf(event, "again"))
	if got := s.names(t, events, 0); !slices.Contains(got, "again") || !slices.Contains(got, "e4") {
		t.Errorf("after its return there are %v", got)
	}
}

// names lists the names of the objects at path, in pages of limit.
func (s *server) names(t *testing.T, path string, limit int) []string {
	t.Helper()
	var names []string
	for token := ""; ; {
		var page struct {
			Metadata struct{ Continue string }
			Items    []struct{ Metadata struct{ Name string } }
		}
		text := s.ask(t, http.MethodGet,
			fmt.Sprintf("%s?limit=%d&continue=%s", path, limit, url.QueryEscape(token)), "")
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			names = append(names, item.Metadata.Name)
		}
		if token = page.Metadata.Continue; token == "" {
			return names
		}
	}
}

// TestUnreachableShowsNoPassword: the error of an etcd that does not answer names its URL without the password.
func TestUnreachableShowsNoPassword(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := openStores(ctx, &options{etcdServers: []string{"http://u:secret@127.0.0.1:1"}}, nil, false,
		etcd.Config{Log: slog.New(slog.DiscardHandler)})
	if err == nil || strings.Contains(err.Error(), "secret") ||
		!strings.Contains(err.Error(), "http://u:xxxxx@127.0.0.1:1") {
		t.Errorf("%v, want an error with the URL and without its password", err)
	}
}

// TestOverridesReference: a real kube-apiserver with the same flags finds everything where ours has put it, and the
// other way round.
func TestOverridesReference(t *testing.T) {
	t.Parallel()
	if os.Getenv("REFERENCE_KUBE_APISERVER") == "" {
		t.Skip("SKIPPED: Kubernetes' own kube-apiserver was NOT tried on several etcds (REFERENCE_KUBE_APISERVER names none)")
	}
	a, b, c := etcdtest.Start(t), etcdtest.Start(t), etcdtest.Start(t)
	flags := []string{"--etcd-servers=" + a.Endpoint, "--etcd-servers-overrides=/*#" + b.Endpoint +
		",/events#" + c.Endpoint + ",apps/*#" + c.Endpoint,
		"--advertise-address=192.0.2.1"} // nobody connects to it
	type maker func(*testing.T, ...string) *server
	for n, start := range []maker{startOurs, startReference, startOurs} {
		s := start(t, flags...)
		s.ask(t, http.MethodPost, "/api/v1/namespaces/default/events", fmt.Sprintf(event, fmt.Sprintf("e%d", n)))
		s.ask(t, http.MethodPost, "/api/v1/namespaces/default/secrets", fmt.Sprintf(`{"metadata": {"name": "s%d"}}`, n))
		s.ask(t, http.MethodPost, "/apis/apps/v1/namespaces/default/controllerrevisions",
			fmt.Sprintf(`{"metadata": {"name": "c%d"}, "revision": 1, "data": {}}`, n))
		s.ask(t, http.MethodPost, "/api/v1/namespaces/default/services",
			fmt.Sprintf(`{"metadata": {"name": "s%d"}, "spec": {"type": "NodePort", "ports": [{"port": 1}]}}`, n))
		for path, want := range map[string]int{"/api/v1/namespaces/default/events": n + 1,
			"/api/v1/namespaces/default/secrets": n + 1, "/apis/apps/v1/controllerrevisions": n + 1,
			"/api/v1/namespaces/default/services": n + 2, "/api/v1/namespaces": 4} {
			if got := s.names(t, path, 2); len(got) < want {
				t.Errorf("%s: %s has %v, want %d", s.name, path, got, want)
			}
		}
		// The address of a server is there only while it runs.
		s.until(t, "/readyz", func(int, string) bool { return anything(t, b.Endpoint, "/registry/masterleases/") })
		if anything(t, a.Endpoint, "/registry/masterleases/") {
			t.Errorf("%s keeps its address in --etcd-servers", s.name)
		}
		s.stop()
	}
	where := map[string]string{a.Endpoint: "ipaddresses apiregistration.k8s.io/apiservices",
		b.Endpoint: "secrets services/specs namespaces ranges", c.Endpoint: "events controllerrevisions"}
	for endpoint, prefixes := range where {
		for prefix := range strings.FieldsSeq(strings.Join([]string{where[a.Endpoint], where[b.Endpoint],
			where[c.Endpoint]}, " ")) {
			want := slices.Contains(strings.Fields(prefixes), prefix)
			if got := anything(t, endpoint, "/registry/"+prefix+"/"); got != want {
				t.Errorf("%s has /registry/%s/: %t, want %t", endpoint, prefix, got, want)
			}
		}
	}
}
