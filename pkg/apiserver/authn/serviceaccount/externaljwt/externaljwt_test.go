package externaljwt_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	signerapi "k8s.io/externaljwt/apis/v1"

	"bonsai/pkg/apiserver/authn/serviceaccount"
	"bonsai/pkg/apiserver/authn/serviceaccount/externaljwt"
	"bonsai/pkg/referencetest"
)

// process signs tokens on a socket. Its fields are what it answers, and may be changed.
type process struct {
	signerapi.UnimplementedExternalJWTSignerServer
	socket string
	server *grpc.Server

	mu      sync.Mutex
	keys    []*signerapi.Key
	hint    int64
	longest int64
	key     *ecdsa.PrivateKey
	header  string
	claims  func(string) string
	delay   time.Duration
	failure error // of Sign and FetchKeys
	fetches int
	asked   chan struct{} // gets one for each question that finds room
}

func newProcess(t *testing.T) *process {
	t.Helper()
	dir, err := os.MkdirTemp("", "jwt") // a test's own directory may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &process{socket: filepath.Join(dir, "s"), hint: 60, longest: 3600 * 24, asked: make(chan struct{}, 1)}
	p.rotate(t, "first")
	return p
}

func (p *process) start(t *testing.T) *process {
	t.Helper()
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	p.server = server
	signerapi.RegisterExternalJWTSignerServer(server, p)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return p
}

// change calls f while the process answers nobody.
func (p *process) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// rotate gives it a new key that signs. The earlier ones still verify.
func (p *process) rotate(t *testing.T, id string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pkix, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	p.change(func() {
		p.key, p.keys = key, append(p.keys, &signerapi.Key{KeyId: id, Key: pkix})
		p.header = `{"alg":"ES256","kid":"` + id + `","typ":"JWT"}`
	})
}

// wait returns after the delay. It fails when the caller has gone, which may be before the caller has noticed: the
// process knows the caller's deadline.
func (p *process) wait(ctx context.Context) error {
	p.mu.Lock()
	timer := time.NewTimer(p.delay)
	p.mu.Unlock()
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.failure
	}
}

func (p *process) Sign(ctx context.Context, r *signerapi.SignJWTRequest) (*signerapi.SignJWTResponse, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	claims := r.GetClaims()
	if p.claims != nil {
		claims = p.claims(claims)
	}
	head := base64.RawURLEncoding.EncodeToString([]byte(p.header))
	sum := sha256.Sum256([]byte(head + "." + claims))
	a, b, err := ecdsa.Sign(rand.Reader, p.key, sum[:])
	if err != nil {
		return nil, err
	}
	signature := append(a.FillBytes(make([]byte, 32)), b.FillBytes(make([]byte, 32))...)
	return &signerapi.SignJWTResponse{Header: head, Signature: base64.RawURLEncoding.EncodeToString(signature)}, nil
}

func (p *process) FetchKeys(ctx context.Context, _ *signerapi.FetchKeysRequest) (*signerapi.FetchKeysResponse, error) {
	select {
	case p.asked <- struct{}{}:
	default:
	}
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetches++
	return &signerapi.FetchKeysResponse{Keys: p.keys, RefreshHintSeconds: p.hint, DataTimestamp: timestamppb.Now()}, nil
}

func (p *process) Metadata(context.Context, *signerapi.MetadataRequest) (*signerapi.MetadataResponse, error) {
	return &signerapi.MetadataResponse{MaxTokenExpirationSeconds: p.longest}, nil
}

func (p *process) open(t *testing.T) (*externaljwt.Signer, *referencetest.Registry, error) {
	t.Helper()
	counted := referencetest.NewRegistry()
	s, err := externaljwt.Open(t.Context(), externaljwt.Config{Socket: p.socket, Metrics: counted,
		Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, counted, err
}

// world issues and accepts tokens by the process.
type world struct {
	*process
	signer  *externaljwt.Signer
	counted *referencetest.Registry
	issuer  *serviceaccount.Issuer
	authn   *serviceaccount.Authenticator
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{process: newProcess(t).start(t)}
	var err error
	if w.signer, w.counted, err = w.open(t); err != nil {
		t.Fatal(err)
	}
	if w.issuer, err = serviceaccount.NewIssuer(serviceaccount.IssuerConfig{URL: "https://issuer", Signer: w.signer,
		APIAudiences: []string{"api"}, MaxLifetime: w.signer.MaxLifetime()}); err != nil {
		t.Fatal(err)
	}
	w.authn = serviceaccount.New(serviceaccount.Config{Keys: w.signer, Issuers: []string{"https://issuer"},
		APIAudiences: []string{"api"}})
	return w
}

func (w *world) issue(t *testing.T) (string, error) {
	t.Helper()
	token, _, err := w.issuer.Issue(t.Context(), serviceaccount.Request{Namespace: "ns",
		ServiceAccount: serviceaccount.Ref{Name: "sa", UID: "uid"}})
	return token, err
}

// refusal returns why the token is not accepted; "" if it is.
func (w *world) refusal(t *testing.T, token string) string {
	t.Helper()
	user, _, err := w.authn.AuthenticateToken(t.Context(), token, nil)
	switch {
	case err != nil:
		return err.Error()
	case user == nil:
		return "nobody knows it"
	}
	return ""
}

// TestTokens: the process signs and its keys verify, also those that it got later, and while it is down.
func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, err := w.issue(t)
	if err != nil {
		t.Fatal(err)
	}
	w.rotate(t, "second")
	second, err := w.issue(t)
	if err != nil {
		t.Fatal(err)
	}
	w.server.Stop()
	for _, token := range []string{first, second} {
		if got := w.refusal(t, token); got != "" {
			t.Errorf("refused: %s", got)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := w.signer.Sign(ctx, []byte("{}")); err == nil {
		t.Error("a process that is down has signed")
	}
	w.start(t)
	if _, err := w.issue(t); err != nil {
		t.Errorf("the process is back: %v", err)
	}
	if n := w.gauge(t, "apiserver_externaljwt_fetch_keys_data_timestamp"); n < 1e9 {
		t.Errorf("the data's time is %v", n)
	}
}

// gauge returns the value of a gauge with one series.
func (w *world) gauge(t *testing.T, name string) float64 {
	t.Helper()
	families, err := w.counted.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// TestLies: what the process returns is refused unless one of its published keys signed the claims.
func TestLies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*process)
		want   string
	}{
		"claims":     {func(p *process) { p.claims = func(s string) string { return s + "AAAA" } }, "bad signature"},
		"other kid":  {func(p *process) { p.header = `{"alg":"ES256","kid":"x","typ":"JWT"}` }, "not among its keys"},
		"no kid":     {func(p *process) { p.header = `{"alg":"ES256","typ":"JWT"}` }, "kid must have"},
		"no typ":     {func(p *process) { p.header = `{"alg":"ES256","kid":"first"}` }, "typ is"},
		"none":       {func(p *process) { p.header = `{"alg":"none","kid":"first","typ":"JWT"}` }, "bad signing"},
		"HS256":      {func(p *process) { p.header = `{"alg":"HS256","kid":"first","typ":"JWT"}` }, "bad signing"},
		"other alg":  {func(p *process) { p.header = `{"alg":"ES384","kid":"first","typ":"JWT"}` }, "is one of ES256"},
		"more":       {func(p *process) { p.header = `{"alg":"ES256","kid":"first","typ":"JWT","jku":"x"}` }, "jku"},
		"other case": {func(p *process) { p.header = `{"alg":"ES256","kid":"first","typ":"JWT","Kid":"x"}` }, "Kid"},
		"garbage":    {func(p *process) { p.header = `{` }, "header JSON"},
		"null":       {func(p *process) { p.header = `null` }, "typ is"},
		"huge":       {func(p *process) { p.header += strings.Repeat(" ", 1<<14) }, "more than 4 KiB"},
		"endless":    {func(p *process) { p.header += strings.Repeat(" ", 1<<20) }, "larger than max"},
		"hidden":     {func(p *process) { p.keys[0].ExcludeFromOidcDiscovery = true }, "excluded from OIDC discovery"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{process: newProcess(t)}
			if name == "hidden" {
				c.change(w.process)
			}
			w.start(t)
			signer, _, err := w.open(t)
			if err != nil {
				t.Fatal(err)
			}
			w.change(func() { c.change(w.process) })
			token, err := signer.Sign(t.Context(), []byte(`{"iss":"x"}`))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, %v, want %q", token, err, c.want)
			}
		})
	}
}

// TestStart: bad keys and bad metadata end the start.
func TestStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*process)
		want   string
	}{
		"no keys":     {func(p *process) { p.keys = nil }, "found no keys"},
		"no hint":     {func(p *process) { p.hint = 0 }, "found invalid refresh hint (0s)"},
		"no name":     {func(p *process) { p.keys[0].KeyId = "" }, "found invalid public key id"},
		"long name":   {func(p *process) { p.keys[0].KeyId = strings.Repeat("x", 1025) }, "invalid public key id"},
		"twice":       {func(p *process) { p.keys = append(p.keys, p.keys[0]) }, "twice"},
		"empty key":   {func(p *process) { p.keys[0].Key = nil }, "found empty public key"},
		"garbage":     {func(p *process) { p.keys[0].Key = []byte("x") }, "public key"},
		"short lives": {func(p *process) { p.longest = 599 }, "(599s) is less than acceptable (min 600s)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProcess(t)
			c.change(p)
			if _, _, err := p.start(t).open(t); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestLate: a process that comes while the server starts is waited for.
func TestLate(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	opened := make(chan error, 1)
	go func() {
		_, err := externaljwt.Open(t.Context(), externaljwt.Config{Socket: p.socket,
			Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("opened before there was a process: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	p.start(t)
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// TestSlow: a call to a slow process ends with its caller.
func TestSlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change(func() { w.delay = time.Hour })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := w.signer.Sign(ctx, []byte("{}")); err == nil {
		t.Error("a slow process has signed")
	}
}

// TestHostileWords: the process chooses neither how long an error is, nor its characters, nor new labels of metrics.
func TestHostileWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for code := range codes.Code(100) {
		w.change(func() { w.failure = status.Error(17+code, strings.Repeat("x\x1b[2J", 4096)) })
		_, err := w.signer.Sign(t.Context(), []byte("{}"))
		if err == nil || len(err.Error()) > 1200 || strings.Contains(err.Error(), "\x1b") {
			t.Fatalf("got %.2000q", err)
		}
	}
	families, err := w.counted.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := len(f.GetMetric()); n > 5 {
			t.Errorf("%s has %d series", f.GetName(), n)
		}
	}
}

// TestSilent: a process that takes connections and never answers, answers by what is no gRPC, or hangs up, holds
// neither tokens of known keys nor the end of the signer, and callers no longer than their context.
func TestSilent(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(net.Conn){
		"silent":   func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) },
		"garbage":  func(conn net.Conn) { _, _ = io.WriteString(conn, strings.Repeat("garbage", 100)) },
		"hangs up": func(net.Conn) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			token, err := w.issue(t)
			if err != nil {
				t.Fatal(err)
			}
			w.server.Stop()
			l, err := net.Listen("unix", w.socket)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go func() {
				for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
					go func() {
						defer conn.Close()
						serve(conn)
					}()
				}
			}()
			// More than may be under way at a time, and questions for keys, which must not be in their way.
			ctx, cancel := context.WithCancel(t.Context())
			var waiting sync.WaitGroup
			for n := range 200 {
				waiting.Go(func() { _, _ = w.signer.Sign(ctx, []byte("{}")) })
				waiting.Go(func() { w.signer.For(ctx, "unknown"+strconv.Itoa(n)) })
			}
			soon, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer stop()
			if _, err := w.signer.Sign(soon, []byte("{}")); err == nil {
				t.Error("it has signed")
			}
			began := time.Now()
			if got := w.refusal(t, token); got != "" {
				t.Errorf("a token of a known key is refused: %s", got)
			}
			_ = w.signer.Close()
			waiting.Wait()
			cancel()
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("a known token and the end took %s", took)
			}
		})
	}
}

// TestUnknownKeys: tokens with keys that nobody knows make the server ask, but not for each of them.
func TestUnknownKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	payload := base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://issuer"}`))
	for range 1000 {
		head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"` + rand.Text() + `"}`))
		if got := w.refusal(t, head+"."+payload+"."+strings.Repeat("A", 86)); !strings.Contains(got, "signature") {
			t.Fatalf("refused because %q", got)
		}
	}
	w.change(func() {
		if w.fetches > 100 {
			t.Errorf("1000 tokens asked %d times", w.fetches)
		}
	})
}

// TestOthersLeave: a caller that leaves while the process is asked for the keys fails nobody else who waits for them.
func TestOthersLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rotate(t, "second")
	w.change(func() { w.delay = 200 * time.Millisecond })
	<-w.asked // by Open
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for asked := false; !asked && ctx.Err() == nil; { // not sooner than the least pause allows
			w.signer.For(ctx, "unknown")
			asked = len(w.asked) > 0
		}
	})
	for len(w.asked) == 0 && t.Context().Err() == nil {
		runtime.Gosched()
	}
	all.Go(func() {
		if got := w.signer.For(t.Context(), "second"); len(got) != 1 {
			t.Errorf("the new key verifies as %v", got)
		}
	})
	time.AfterFunc(50*time.Millisecond, cancel)
	all.Wait()
}

// TestRefresh: keys are asked for again by the hint; a bad answer keeps the earlier ones, and a key that is gone
// verifies nothing more.
func TestRefresh(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.hint = 1
	p.start(t)
	signer, _, err := p.open(t)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- signer.Run(ctx) }()
	p.rotate(t, "second")
	p.change(func() { p.keys = p.keys[1:] })
	for deadline := time.Now().Add(20 * time.Second); ; {
		keys, _ := signer.Published()
		if len(keys) == 1 && keys[0].ID == "second" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the keys are %v", keys)
		}
		<-time.After(20 * time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := signer.For(t.Context(), "first"); len(got) != 0 {
		t.Error("a key that is gone still verifies")
	}
}

// TestDiscovery: hidden keys verify tokens and are not published.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.rotate(t, "second")
	p.keys[0].ExcludeFromOidcDiscovery = true
	signer, _, err := p.start(t).open(t)
	if err != nil {
		t.Fatal(err)
	}
	_, jwks := serviceaccount.Discovery("https://issuer", "https://x/jwks", signer)
	answer := httptest.NewRecorder()
	jwks.ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
	if body := answer.Body.String(); strings.Contains(body, "first") || !strings.Contains(body, `"kid":"second"`) {
		t.Errorf("got %s", body)
	}
	if age := answer.Header().Get("Cache-Control"); age != "public, max-age=59" && age != "public, max-age=58" {
		t.Errorf("may be kept: %s", age)
	}
	if got := signer.For(t.Context(), "first"); len(got) != 1 || got[0].ID != "first" {
		t.Errorf("the hidden key verifies as %v", got)
	}
}

// TestReferenceMetrics: docs/reference has the metrics of the signer as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	_, counted, err := newProcess(t).start(t).open(t)
	if err != nil {
		t.Fatal(err)
	}
	referencetest.MetricsPage(t, "kube-apiserver-signing", "Metrics of the signer of tokens",
		"At `/metrics` of kube-apiserver with `--service-account-signing-endpoint`.",
		"./pkg/apiserver/authn/serviceaccount/externaljwt", counted.Metrics())
}
