package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// whoServer knows its callers by what they show: the name in the client's certificate, or the bearer token.
func whoServer(t *testing.T) (url string, authority []byte) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		name := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		switch {
		case name == "" || name == "stale":
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","message":"Unauthorized","code":401}`)
		case r.URL.Path == "/api":
			io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case r.URL.Path == "/api/v1":
			io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`)
		case r.URL.Path == "/apis":
			io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		default:
			fmt.Fprintf(w, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":{"username":%q}}}`,
				name)
		}
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// certificateOf makes a client's certificate and its key.
func certificateOf(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// user is a kubeconfig of one user of a whoServer, without credentials.
type user struct {
	t    *testing.T
	path string
}

func newUser(t *testing.T, url string, authority []byte) user {
	t.Helper()
	u := user{t, filepath.Join(t.TempDir(), "config")}
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"set-cluster c --embed-certs --server " + url + " --certificate-authority " + ca,
		"set-context x --cluster c --user u", "use-context x"} {
		if out, err := u.kubectl(strings.Fields("config " + args)...); err != nil {
			t.Fatalf("config %s: %v\n%s", args, err, out)
		}
	}
	return u
}

func (u user) kubectl(args ...string) (string, error) {
	cmd := exec.CommandContext(u.t.Context(), os.Args[0],
		append(args, "--kubeconfig", u.path, "--cache-dir", u.t.TempDir())...)
	cmd.Env = append(os.Environ(), "KUBECTL_UNDER_TEST=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// plugin writes a program that counts its runs, keeps what it is given, and prints a credential.
func plugin(t *testing.T, version string, status map[string]string) (path string) {
	t.Helper()
	answer, err := json.Marshal(map[string]any{"apiVersion": "client.authentication.k8s.io/" + version,
		"kind": "ExecCredential", "status": status})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path = filepath.Join(dir, "plug-in")
	for name, text := range map[string]string{"answer": string(answer),
		"plug-in": "#!/bin/sh\necho run >>" + dir + "/runs\necho \"$KUBERNETES_EXEC_INFO $*=$A\" >" + dir +
			"/given\ncat " + dir + "/answer\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// of reads a file that a plug-in wrote.
func of(t *testing.T, plugin, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(plugin), name))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// TestPlugins: a program that "config set-credentials" names provides the credentials, or the error says what is wrong
// with it.
func TestPlugins(t *testing.T) {
	t.Parallel()
	url, authority := whoServer(t)
	const v1 = "--exec-api-version=client.authentication.k8s.io/v1"
	never := []string{v1, "--exec-interactive-mode=Never"}
	certificate, key := certificateOf(t, "carl")
	fails := filepath.Join(t.TempDir(), "fails")
	if err := os.WriteFile(fails, []byte("#!/bin/sh\necho no luck >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		command string
		flags   []string
		want    string
	}{
		"a token":       {plugin(t, "v1", map[string]string{"token": "tina"}), never, "Username    tina\n"},
		"a certificate": {plugin(t, "v1", map[string]string{"clientCertificateData": certificate, "clientKeyData": key}), never, "Username    carl\n"},
		"v1beta1": {plugin(t, "v1beta1", map[string]string{"token": "tina"}),
			[]string{"--exec-api-version=client.authentication.k8s.io/v1beta1"}, "Username    tina\n"},
		"no mode": {plugin(t, "v1", nil), []string{v1},
			"interactiveMode must be specified for u to use exec authentication plugin"},
		"no terminal": {plugin(t, "v1", map[string]string{"token": "tina"}), []string{v1, "--exec-interactive-mode=Always"},
			"exec plugin cannot support interactive mode: standard input is not a terminal"},
		"another version": {plugin(t, "v1beta1", map[string]string{"token": "tina"}), never,
			"exec plugin is configured to use API version client.authentication.k8s.io/v1, plugin returned version client.authentication.k8s.io/v1beta1"},
		"nothing": {plugin(t, "v1", map[string]string{"expirationTimestamp": "2026-01-01T00:00:00Z"}), never,
			"exec plugin didn't return a token or cert/key pair"},
		"half a pair": {plugin(t, "v1", map[string]string{"clientCertificateData": certificate}), never,
			"exec plugin returned only certificate or key, not both"},
		"no program": {"login-that-is-missing", never, "exec: executable login-that-is-missing not found"},
		"a failure":  {fails, never, "exec: executable " + fails + " failed with exit code 3"},
		"refused":    {plugin(t, "v1", map[string]string{"token": "stale"}), never, "You must be logged in to the server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, url, authority)
			if out, err := u.kubectl(append([]string{"config", "set-credentials", "u", "--exec-command=" + c.command},
				c.flags...)...); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			out, _ := u.kubectl("auth", "whoami")
			if !strings.Contains(out, c.want) {
				t.Errorf("%q, want %q", out, c.want)
			}
		})
	}
}

// TestPluginIsAskedAgain: a credential serves until it expires or is refused, and the program learns what it is for.
func TestPluginIsAskedAgain(t *testing.T) {
	t.Parallel()
	url, authority := whoServer(t)
	for name, c := range map[string]struct {
		status map[string]string
		again  bool // for each of several requests
	}{
		"for good": {map[string]string{"token": "tina"}, false},
		"for long": {map[string]string{"token": "tina", "expirationTimestamp": "2999-01-01T00:00:00Z"}, false},
		"expired":  {map[string]string{"token": "tina", "expirationTimestamp": "2020-01-01T00:00:00Z"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, command := newUser(t, url, authority), plugin(t, "v1", c.status)
			if out, err := u.kubectl("config", "set-credentials", "u", "--exec-command="+command, "--exec-arg=one",
				"--exec-env=A=B", "--exec-api-version=client.authentication.k8s.io/v1", "--exec-interactive-mode=IfAvailable",
				"--exec-provide-cluster-info=true"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if out, err := u.kubectl("api-versions"); err != nil || out != "v1\n" {
				t.Errorf("%v\n%s", err, out)
			}
			if runs := strings.Count(of(t, command, "runs"), "run"); runs == 0 || runs > 1 != c.again {
				t.Errorf("the program ran %d times; for each request: want %t", runs, c.again)
			}
			given := of(t, command, "given")
			for _, want := range []string{`"apiVersion":"client.authentication.k8s.io/v1"`, `"interactive":false`,
				`"server":"` + url + `"`, "one=B"} {
				if !strings.Contains(given, want) {
					t.Errorf("the program was not given %s: %s", want, given)
				}
			}
		})
	}
}
