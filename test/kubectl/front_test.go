package kubectl

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"bonsai/api/kubeversion"
)

// front is a server that tells what it is asked, by whom and by which way, and proxies in front of it. It has just what
// invocations of kubectl need to show how they connect.
type front struct {
	mu   sync.Mutex
	seen []string
	// failures counts the answers to /flaky of the invocation.
	failures int

	// server speaks TLS, plain does not; refusing knows no WebSocket.
	server, plain, refusing *httptest.Server
	// proxy takes CONNECT and plain requests, secure is the same over TLS, socks is one of SOCKS5.
	proxy, secure *httptest.Server
	socks         net.Listener

	ca, other, client, expired credentials
}

// credentials are a certificate and its key as PEM.
type credentials struct {
	cert, key []byte
	parsed    *x509.Certificate
	signer    *ecdsa.PrivateKey
}

// issue makes a certificate for name, signed by the authority given or, without one, by itself as an authority.
func issue(t *testing.T, name string, by *credentials, until time.Time) credentials {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	tpl := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: until.Add(-48 * time.Hour),
		NotAfter: until, BasicConstraintsValid: true,
		IsCA: by == nil, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	parent, signer := tpl, key
	if by != nil {
		parent, signer = by.parsed, by.signer
		tpl.KeyUsage = x509.KeyUsageDigitalSignature
		tpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
		tpl.DNSNames, tpl.IPAddresses = []string{name}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, tpl, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return credentials{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), parsed, key}
}

// serverName is what the server's certificate says, beside 127.0.0.1.
const serverName = "cluster.test"

func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{}
	day := time.Now().Add(24 * time.Hour)
	f.ca, f.other = issue(t, "ca", nil, day), issue(t, "other", nil, day)
	f.client, f.expired = issue(t, "ann", &f.ca, day), issue(t, "old", &f.ca, time.Now().Add(-time.Hour))
	served := issue(t, serverName, &f.ca, day)
	pair, err := tls.X509KeyPair(served.cert, served.key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(f.ca.parsed)
	start := func(h http.HandlerFunc, secure bool) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that refuse it are part of the test
		s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.VerifyClientCertIfGiven,
			ClientCAs: clients}
		if secure {
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		return s
	}
	f.server, f.plain = start(f.serve, true), start(f.serve, false)
	f.refusing = start(func(w http.ResponseWriter, r *http.Request) {
		if websocket.IsWebSocketUpgrade(r) {
			f.note(r)
			http.Error(w, "no WebSocket here", http.StatusBadRequest)
			return
		}
		f.serve(w, r)
	}, true)
	f.proxy, f.secure = start(f.connect, false), start(f.connect, true)
	if f.socks, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.socks.Close() })
	go f.serveSOCKS()
	return f
}

// tell keeps a line of what was seen.
func (f *front) tell(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, fmt.Sprintf(format, args...))
}

// taken returns what was seen since it was last called.
func (f *front) taken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.seen
	f.seen, f.failures = nil, 0
	return out
}

// silent are headers that say nothing of how kubectl connects.
var silent = []string{"Accept", "Accept-Encoding", "User-Agent", "Content-Type", "Content-Length", "Traceparent",
	"Connection", "Sec-Websocket-Key", "Sec-Websocket-Version"}

// note tells of a request: what, which certificate and name it came with, and its headers.
func (f *front) note(r *http.Request) {
	line := r.Method + " " + r.URL.RequestURI()
	if r.TLS != nil {
		if len(r.TLS.PeerCertificates) > 0 {
			line += " certificate=" + r.TLS.PeerCertificates[0].Subject.CommonName
		}
		if r.TLS.ServerName != "" {
			line += " name=" + r.TLS.ServerName
		}
	}
	for _, h := range slices.Sorted(maps.Keys(r.Header)) {
		if !slices.Contains(silent, h) {
			line += fmt.Sprintf(" %s=%s", h, strings.Join(r.Header[h], ","))
		}
	}
	f.tell("%s", line)
}

// answers are the objects of the server.
func answers() map[string]string {
	const resources = `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","shortNames":["cm"],"verbs":["create","get","list","watch"]},
		{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list","watch"]}]}`
	const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"default"},"spec":{"containers":[{"name":"c"}]},"status":{"phase":"Running"}}`
	return map[string]string{
		"/whoami": "ok\n", "/api": `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`, "/api/v1": resources,
		"/api/v1/namespaces/default/pods/p": pod,
		"/version": `{"major":"1","minor":"` + kubeversion.Minor + `","gitVersion":"` + kubeversion.Release +
			`"}`,
	}
}

// configMap is in every namespace.
const configMap = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m","namespace":"here"}}`

func (f *front) serve(w http.ResponseWriter, r *http.Request) {
	f.note(r)
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if first == "under" { // the API may be there too
		r.URL.Path = "/" + rest[strings.Index(rest, "/")+1:]
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case first == "flaky": // /flaky/CODE/TIMES/RETRY-AFTER
		f.flaky(w, strings.Split(rest, "/"))
	case first == "slow":
		<-r.Context().Done()
	case first == "token": // /token/VALUE
		if r.Header.Get("Authorization") == "Bearer "+rest {
			io.WriteString(w, "welcome\n")
			return
		}
		status(w, http.StatusUnauthorized, "Unauthorized")
	case first == "idp":
		f.identify(w, r, rest)
	case strings.HasSuffix(r.URL.Path, "/pods/p/exec") || strings.HasSuffix(r.URL.Path, "/pods/p/attach"):
		f.stream(w, r)
	case strings.HasSuffix(r.URL.Path, "/pods/p/portforward"):
		status(w, http.StatusForbidden, "no forwarding here")
	case strings.HasSuffix(r.URL.Path, "/configmaps") && r.Method == http.MethodGet:
		io.WriteString(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[`+configMap+`]}`)
	case strings.HasSuffix(r.URL.Path, "/configmaps/m") || strings.HasSuffix(r.URL.Path, "/configmaps"):
		io.WriteString(w, configMap)
	case answers()[r.URL.Path] != "":
		io.WriteString(w, answers()[r.URL.Path])
	default:
		status(w, http.StatusNotFound, "the server could not find the requested resource")
	}
}

// status answers as an API server refuses.
func status(w http.ResponseWriter, code int, message string) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`, message,
		strings.ReplaceAll(http.StatusText(code), " ", ""), code)
}

// flaky refuses the first requests of an invocation.
func (f *front) flaky(w http.ResponseWriter, how []string) {
	code, _ := strconv.Atoi(how[0])
	times, _ := strconv.Atoi(how[1])
	f.mu.Lock()
	f.failures++
	done := f.failures > times
	f.mu.Unlock()
	if done {
		io.WriteString(w, "at last\n")
		return
	}
	if how[2] != "-" {
		w.Header().Set("Retry-After", how[2])
	}
	status(w, code, "try again")
}

// identify is a provider of OpenID Connect that refreshes tokens.
func (f *front) identify(w http.ResponseWriter, r *http.Request, path string) {
	switch path {
	case ".well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer":"https://%[1]s/idp","token_endpoint":"https://%[1]s/idp/token"}`, r.Host)
	case "token":
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		if err != nil {
			return
		}
		f.tell("refresh %s", body)
		// claims: {"exp": 32503680000}, far away
		fmt.Fprint(w, `{"access_token":"access","token_type":"Bearer","refresh_token":"next","id_token":"`+freshToken+
			`"}`)
	default:
		http.NotFound(w, nil)
	}
}

// Tokens that say when they expire, in the year 3000 and in 2001; nothing verifies what they are signed with.
const (
	freshToken = "eyJhbGciOiJub25lIn0.eyJleHAiOjMyNTAzNjgwMDAwfQ.fresh"
	staleToken = "eyJhbGciOiJub25lIn0.eyJleHAiOjEwMDAwMDAwMDB9.stale"
)

// said is the process of the pod: it says hello.
type said struct{}

func (said) ExecInContainer(_ context.Context, _, _, _ string, _ []string, _ io.Reader, out, _ io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	_, err := io.WriteString(out, "hello over SPDY\n")
	return err
}

// stream serves exec and attach: over WebSocket as an API server does, over SPDY as a kubelet.
func (f *front) stream(w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		// a kubelet has other names for the streams than an API server
		remotecommand.ServeExec(w, r, said{}, "p", "", "c", nil, &remotecommand.Options{Stdout: true, Stderr: true},
			time.Minute, time.Minute, remotecommand.SupportedStreamingProtocols)
		return
	}
	up := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
	w.Header().Del("Content-Type")
	c, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer c.Close()
	for _, m := range []string{"\x01hello over WebSocket\n", "\x03" + `{"metadata":{},"status":"Success"}`} {
		if err := c.WriteMessage(websocket.BinaryMessage, []byte(m)); err != nil {
			return
		}
	}
	// the client may have gone
	_ = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""),
		time.Now().Add(time.Second))
	// its answer
	_, _, _ = c.ReadMessage()
}
