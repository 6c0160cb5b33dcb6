package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/apiserver/storage/etcdtest"
)

// TestAuthoritiesReload: a certificate that the new authorities do not know gets no further request in, on new
// connections and on those that were open, of clients and of front proxies. A watch that it began goes on, as on a real
// kube-apiserver v1.36.3. A file without a certificate changes nothing, and the log says so.
func TestAuthoritiesReload(t *testing.T) {
	t.Parallel()
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		testAuthoritiesReload(t, startOurs, "certificate authorities could not be read again")
	})
	t.Run("reference", func(t *testing.T) {
		t.Parallel()
		if os.Getenv("REFERENCE_KUBE_APISERVER") == "" {
			t.Skip("SKIPPED: Kubernetes' own kube-apiserver was NOT asked about changed authorities (REFERENCE_KUBE_APISERVER names none)")
		}
		testAuthoritiesReload(t, startReference, "loading CA bundle")
	})
}

func testAuthoritiesReload(t *testing.T, start func(*testing.T, ...string) *server, complaint string) {
	t.Helper()
	dir := t.TempDir()
	clientFile, proxyFile := filepath.Join(dir, "clients.crt"), filepath.Join(dir, "proxies.crt")
	before, after, proxyBefore, proxyAfter := newAuthority(t), newAuthority(t), newAuthority(t), newAuthority(t)
	replaceFile(t, clientFile, before.pem)
	replaceFile(t, proxyFile, proxyBefore.pem)
	s := start(t, "--etcd-servers="+etcdtest.Start(t).Endpoint, "--client-ca-file="+clientFile,
		"--requestheader-client-ca-file="+proxyFile, "--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-allowed-names=proxy")
	type side struct {
		file       string
		old, new   *authority
		name       string
		forwarding bool
	}
	sides := []side{{clientFile, before, after, "alice", false}, {proxyFile, proxyBefore, proxyAfter, "proxy", true}}
	var open []*caller
	for _, one := range sides {
		for _, http2 := range []bool{false, true} {
			c := newCaller(t, s.url, one.old.sign(t, one.name), http2, one.forwarding)
			c.want(t, http.StatusOK, false)
			c.want(t, http.StatusOK, true)
			open = append(open, c)
		}
	}
	watching := open[1].watch(t)
	for _, one := range sides {
		replaceFile(t, one.file, one.new.pem)
		known := newCaller(t, s.url, one.new.sign(t, one.name), true, one.forwarding)
		known.await(t, http.StatusOK)
	}
	for _, c := range open {
		c.want(t, http.StatusUnauthorized, true)
	}
	for _, one := range sides {
		newCaller(t, s.url, one.old.sign(t, one.name), true, one.forwarding).want(t, http.StatusUnauthorized, false)
	}
	s.ask(t, http.MethodPost, "/api/v1/namespaces/default/configmaps", `{"metadata": {"name": "later"}}`)
	if line, err := watching.ReadString('\n'); err != nil || !strings.Contains(line, `"later"`) {
		t.Errorf("the watch from before goes on with %q, %v", line, err)
	}

	said := strings.Count(s.log.String(), complaint)
	for _, one := range sides {
		replaceFile(t, one.file, "no certificate")
	}
	eventually(t, "the log names the bad files", func() bool {
		// Files are looked at when a client comes.
		newCaller(t, s.url, after.sign(t, "alice"), true, false).want(t, http.StatusOK, false)
		log := s.log.String()
		return strings.Count(log, complaint) > said && strings.Contains(log, clientFile) &&
			strings.Contains(log, proxyFile)
	})
	for _, one := range sides {
		newCaller(t, s.url, one.new.sign(t, one.name), true, one.forwarding).want(t, http.StatusOK, false)
		newCaller(t, s.url, one.old.sign(t, one.name), true, one.forwarding).want(t, http.StatusUnauthorized, false)
	}
	replaceFile(t, clientFile, before.pem+after.pem)
	newCaller(t, s.url, before.sign(t, "alice"), true, false).await(t, http.StatusOK)
}

// authority signs certificates of clients.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	// All have the same name: only their keys tell them apart.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// sign returns a client's certificate, of an administrator.
func (a *authority) sign(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2),
		Subject:   pkix.Name{CommonName: name, Organization: []string{"system:masters"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// caller is a client with a certificate and one connection.
type caller struct {
	url    string
	client *http.Client
	header http.Header
}

func newCaller(t *testing.T, url string, cert tls.Certificate, http2, forwarding bool) *caller {
	t.Helper()
	transport := &http.Transport{ForceAttemptHTTP2: http2,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, // on loopback, in a test
			// The certificate is shown whichever authorities the server names.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }}}
	t.Cleanup(transport.CloseIdleConnections)
	c := &caller{url, &http.Client{Transport: transport}, http.Header{}}
	if forwarding {
		c.header = http.Header{"X-Remote-User": {"bob"}, "X-Remote-Group": {"system:masters"}}
	}
	return c
}

// get asks for the ConfigMaps, and reports whether the connection was open before.
func (c *caller) get(ctx context.Context, query string) (resp *http.Response, reused bool, err error) {
	ctx = httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		c.url+"/api/v1/namespaces/default/configmaps"+query, nil)
	if err != nil {
		return nil, false, err
	}
	req.Header = c.header.Clone()
	resp, err = c.client.Do(req)
	return resp, reused, err
}

// code asks and returns the answer's code.
func (c *caller) code(t *testing.T) (int, bool) {
	t.Helper()
	resp, reused, err := c.get(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, reused
}

func (c *caller) want(t *testing.T, code int, open bool) {
	t.Helper()
	if got, reused := c.code(t); got != code || reused != open {
		t.Errorf("answered %d on an open connection (%t), want %d (%t)", got, reused, code, open)
	}
}

func (c *caller) await(t *testing.T, code int) {
	t.Helper()
	eventually(t, http.StatusText(code), func() bool {
		got, _ := c.code(t)
		return got == code
	})
}

// watch begins to watch the ConfigMaps that come.
func (c *caller) watch(t *testing.T) *bufio.Reader {
	t.Helper()
	resp, _, err := c.get(t.Context(), "?watch=1&fieldSelector=metadata.name=later")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return bufio.NewReader(resp.Body)
}

// replaceFile puts a file in place as a whole, as tools that renew certificates do.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	writeFile(t, path+".new", text)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-tick.C:
			if holds() {
				return
			}
		case <-deadline:
			t.Fatalf("not so after three minutes: %s", what)
		}
	}
}
