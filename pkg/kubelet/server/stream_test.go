package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

func TestExecAndAttachOverSPDY(t *testing.T) {
	t.Parallel()
	f := start(t)
	cert := f.ca.client(t, "admin", "g")
	keyDER, err := x509.MarshalECPrivateKey(cert.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	cfg := &rest.Config{Host: f.url,
		TLSClientConfig: rest.TLSClientConfig{CAData: pemOf("CERTIFICATE", f.cert.Raw),
			CertData: pemOf("CERTIFICATE", cert.Certificate[0]), KeyData: pemOf("EC PRIVATE KEY", keyDER)}}
	for path, want := range map[string]string{"/exec/ns/p/c?command=cat&command=-&": "p/c [cat -] tty=false hello",
		"/attach/ns/p/u/c?": "p/c [attached] tty=false hello"} {
		u, err := url.Parse(f.url + path + "input=1&output=1&error=1")
		if err != nil {
			t.Fatal(err)
		}
		ex, err := remotecommand.NewSPDYExecutor(cfg, "POST", u)
		if err != nil {
			t.Fatal(err)
		}
		var out, errOut bytes.Buffer
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		err = ex.StreamWithContext(ctx,
			remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &errOut})
		cancel()
		if err != nil || out.String() != want || errOut.String() != "to stderr" {
			t.Errorf("%s: %q %q %v", path, out.String(), errOut.String(), err)
		}
	}
}

func TestSubresources(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/stats/summary": "stats", "/metrics": "metrics",
		"/metrics/resource": "metrics", "/metrics/cadvisor": "metrics", "/metrics/probes": "metrics",
		"/metrics/slis": "metrics", "/metricsx": "proxy", "/logs/": "log", "/pods": "pods proxy",
		"/runningpods/": "pods proxy", "/exec/a/b/c": "proxy",
		"/healthz": "healthz proxy", "/configz": "configz proxy", "/flagz": "configz",
		"/statusz": "statusz", "/checkpoint/a/b/c": "checkpoint", "/containerLogs/a/b/c": "proxy",
		"/debug/pprof/heap": "proxy", "/": "proxy"} {
		if got := strings.Join(subresources(path), " "); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestReadersCannotExec: who may only get nodes/proxy gets no process and no connection into a pod, by whatever method
// and upgrade (the WebSocket of exec is a GET, as kubelet-authn-authz says of verbs).
func TestReadersCannotExec(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, path := range []string{"/exec/ns/p/c?output=1&command=id", "/exec/ns/p/u/c?output=1&command=id",
		"/attach/ns/p/c?output=1",
		"/attach/ns/p/u/c?output=1", "/portForward/ns/p?port=80", "/portForward/ns/p/u?port=80", "/run/ns/p/c?cmd=id",
		"/%65xec/ns/p/c?output=1&command=id"} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "CONNECT", "BREW"} {
			for _, upgrade := range []string{"", "websocket", "SPDY/3.1"} {
				if code, body := upgraded(t, f, method, f.url+path,
					upgrade); code != http.StatusForbidden ||
					method != "HEAD" && !strings.Contains(body, "verb=create, resource=nodes, subresource(s)=[proxy]") {
					t.Errorf("%s %s, upgrade %q: %d %q", method, path, upgrade, code, body)
				}
			}
		}
	}
	if code, body := upgraded(t, f, "GET", f.url+"/containerLogs/ns/p/c?tailLines=1", ""); code != http.StatusOK {
		t.Errorf("reading: %d %s", code, body)
	}
	if code, body := upgraded(t, f, "GET", f.url+"/containerLogs/ns/p/c?tailLines=1",
		"websocket"); code != http.StatusForbidden {
		t.Errorf("an upgrade: %d %s", code, body)
	}
}

// upgraded sends a request of "reader", who may get everything of the node.
func upgraded(t *testing.T, f *fixture, method, url, protocol string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer reads")
	if protocol != "" {
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", protocol)
	}
	resp, err := f.client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
