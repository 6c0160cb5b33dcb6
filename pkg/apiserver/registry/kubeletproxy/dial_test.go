package kubeletproxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"

	"bonsai/pkg/apiserver/registry"
)

// Whatever a node or pod says where it is, nothing goes from the server to its own machine or the link, where it is
// trusted for its address: not for a name that leads there, and not for logs and commands either.
func TestNothingGoesToTheServersOwnMachine(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1", "127.8.8.8", "localhost", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1",
		"169.254.169.254", "fe80::1", "224.0.0.1", "255.255.255.255"} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			p := houseAt(t, false, address, func(_ http.ResponseWriter, r *http.Request) {
				t.Errorf("the kubelet was asked for %s", r.URL)
			})
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				verb, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
				c := map[string]registry.Connecter{"log": p.Log(), "exec": p.Exec(), "attach": p.Attach(),
					"portforward": p.PortForward(), "node": p.Node(), "pod": p.Pod(), "service": p.Service()}[verb]
				if err := connect(c, name, "/x", w, r); err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
				}
			}))
			t.Cleanup(front.Close)
			for _, path := range []string{"/log/p", "/node/n", "/node/http:n:8080", "/pod/p", "/pod/https:p:443",
				"/service/svc", "/exec/p?command=x&stdout=1", "/attach/p?stdout=1", "/portforward/p"} {
				for _, upgrade := range []bool{false, true} {
					if upgrade == strings.HasPrefix(path, "/log") ||
						!upgrade && strings.Contains("/exec/attach/portforward", strings.Split(path, "/")[1]) {
						continue // what is not upgraded, and what only is
					}
					r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+path, nil)
					if err != nil {
						t.Fatal(err)
					}
					if upgrade {
						r.Header.Set("Connection", "Upgrade")
						r.Header.Set("Upgrade", "SPDY/3.1")
					}
					resp, err := http.DefaultClient.Do(r)
					if err != nil {
						t.Fatal(err)
					}
					body, _ := io.ReadAll(resp.Body)
					resp.Body.Close()
					if !strings.Contains(string(body), "address not allowed") {
						t.Errorf("%s, upgraded: %v: %d %s", path, upgrade, resp.StatusCode, body)
					}
				}
			}
			for _, path := range []string{"/exec/p?command=x&stdout=1", "/attach/p?stdout=1"} {
				if err := run(t.Context(), front.URL, path,
					remotecommand.StreamOptions{Stdout: io.Discard}); err == nil ||
					!strings.Contains(err.Error(), "address not allowed") {
					t.Errorf("%s over WebSocket: %v", path, err)
				}
			}
			u, err := url.Parse(front.URL + "/portforward/p")
			if err != nil {
				t.Fatal(err)
			}
			d, err := portforward.NewSPDYOverWebsocketDialer(u, &rest.Config{Host: front.URL})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := d.Dial(portforward.PortForwardProtocolV1Name); err == nil {
				t.Error("port-forward over WebSocket was connected")
			}
		})
	}
}

// A kubelet that answers for logs with a redirect sends the server, and its certificate, nowhere (CVE-2020-8559).
func TestRedirectsOfKubeletsAreNotFollowed(t *testing.T) {
	t.Parallel()
	followed := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	t.Cleanup(followed.Close)
	p := houseOf(t, true, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, followed.URL, http.StatusFound)
	})
	if got := ask(t, p.Log(), "p", "", ""); !strings.HasPrefix(got, "302 ") {
		t.Errorf("log: %s", got)
	}
}
