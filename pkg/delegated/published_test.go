package delegated

import (
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// publisher is an API server with one ConfigMap, each version of which is sent to it; the first answers the list.
func publisher(t *testing.T, versions <-chan map[string]string) string {
	t.Helper()
	object := func(data map[string]string) map[string]any {
		return map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "data": data,
			"metadata": map[string]any{"namespace": "kube-system", "name": publishedName, "resourceVersion": "1"}}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/api/v1/namespaces/kube-system/configmaps" ||
			q.Get("fieldSelector") != "metadata.name="+publishedName {
			t.Errorf("asked for %s", r.URL)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		next := func() (data map[string]string, ok bool) {
			select {
			case data = <-versions:
				return data, true
			case <-r.Context().Done():
				return nil, false
			}
		}
		if q.Get("watch") == "" {
			if data, ok := next(); ok {
				_ = json.NewEncoder(w).Encode(
					map[string]any{"kind": "ConfigMapList", "apiVersion": "v1",
						"metadata": map[string]any{"resourceVersion": "1"}, "items": []any{object(data)}})
			}
			return
		}
		_ = http.NewResponseController(w).Flush()
		for {
			data, ok := next()
			if !ok {
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": object(data)})
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// until asks again and again, for half a minute.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late, again := time.After(30*time.Second), time.NewTicker(5*time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-late:
			t.Fatal("never: " + what)
		case <-again.C:
		}
	}
}

// TestPublished: authorities and front proxies are those of the ConfigMap's newest version, and what cannot be read
// stays as it was.
func TestPublished(t *testing.T) {
	t.Parallel()
	oldCA, oldClient := authority(t, "admin", "g")
	newCA, newClient := authority(t, "admin", "g")
	proxyCA, proxy := authority(t, "front-proxy-client")
	otherCA, other := authority(t, "front-proxy-client")
	versions := make(chan map[string]string)
	c, err := NewClient(&rest.Config{Host: publisher(t, versions)})
	if err != nil {
		t.Fatal(err)
	}
	published := c.Published(slog.New(slog.NewTextHandler(io.Discard, nil)))
	who := Union{FrontProxy{published.Trust}, Certificates{published.Clients()}}
	is := func(cert *x509.Certificate, headers ...string) string {
		r := request("", cert)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Add(headers[i], headers[i+1])
		}
		user, ok, _ := who.Authenticate(r)
		if !ok {
			return ""
		}
		for name := range r.Header {
			t.Errorf("the header %s of %s is left", name, user.Username)
		}
		return user.Username
	}
	if got := is(oldClient); got != "" {
		t.Errorf("before anything is read: %q", got)
	}
	done := make(chan struct{})
	go func() { defer close(done); published.Run(t.Context()) }()
	t.Cleanup(func() { <-done })
	data := func(clients, proxies []byte, allowed string) map[string]string {
		return map[string]string{"client-ca-file": string(clients), "requestheader-client-ca-file": string(proxies),
			"requestheader-allowed-names":    allowed,
			"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-group-headers": `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`}
	}
	as := []string{"X-Remote-User", "alice", "X-Remote-Group", "a", "X-Remote-Extra-K", "v"}
	versions <- data(oldCA, proxyCA, `["front-proxy-client"]`)
	until(t, "the first authority", func() bool { return is(oldClient) == "admin" })
	if got := is(proxy, as...); got != "alice" {
		t.Errorf("by the proxy: %q", got)
	}
	if is(newClient) != "" || is(other, as...) != "" {
		t.Error("strangers are known")
	}
	versions <- data(newCA, otherCA, `[]`)
	until(t, "the second authority", func() bool { return is(newClient) == "admin" })
	if got := is(other, as...); got != "alice" || is(oldClient) != "" || is(proxy, as...) != "" {
		t.Errorf("after the change: %q by the new proxy, %q and %q by what was before", got, is(oldClient),
			is(proxy, as...))
	}
	versions <- map[string]string{"client-ca-file": "rubbish", "requestheader-client-ca-file": string(otherCA),
		"requestheader-allowed-names": "rubbish"}
	versions <- data(newCA, otherCA, `["somebody"]`) // taken after the one before was
	until(t, "other names", func() bool { return is(other, as...) == "" })
	if got := is(newClient); got != "admin" {
		t.Errorf("after rubbish: %q", got)
	}
}
