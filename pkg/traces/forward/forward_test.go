package forward

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"bonsai/pkg/trace/traceparent"
	"bonsai/pkg/traces"
	"bonsai/pkg/traces/receiver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client makes a certificate of a node, which is its own authority, and a pool with it.
func client(t *testing.T, node string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: node},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// machine is one with a socket for spans, from which a Forwarder sends on over TLS, with a node's certificate.
func machine(t *testing.T, api http.Handler) collector.TraceServiceClient {
	t.Helper()
	cert, pool := client(t, "n7")
	server := httptest.NewUnstartedServer(api)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	server.StartTLS()
	t.Cleanup(server.Close)
	to := server.Client()
	to.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{cert}
	f := &Forwarder{Client: to, URL: server.URL + "/spans", Log: slog.New(slog.DiscardHandler)}
	r := &receiver.Receiver{Socket: filepath.Join(t.TempDir(), "run", "otlp.sock"), Relay: f.Send, Log: f.Log}
	l, err := r.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		to.CloseIdleConnections()
	})
	conn, err := grpc.NewClient("unix://"+r.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return collector.NewTraceServiceClient(conn)
}

// spans is a message with spans of these names.
func spans(names ...string) *collector.ExportTraceServiceRequest {
	scope := &trace.ScopeSpans{}
	for i, name := range names {
		scope.Spans = append(scope.Spans, &trace.Span{TraceId: []byte("0123456789abcdef"),
			SpanId: []byte{1, 2, 3, 4, 5, 6, 7, byte(i)}, Name: name, StartTimeUnixNano: 1, EndTimeUnixNano: 2})
	}
	return &collector.ExportTraceServiceRequest{
		ResourceSpans: []*trace.ResourceSpans{{ScopeSpans: []*trace.ScopeSpans{scope}}}}
}

// TestSend: what comes by the socket of a machine arrives over TLS as the node's whose certificate the machine has, and
// the sender has the store's answer. No request asks to be recorded.
func TestSend(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []*traces.Record
	keep := &receiver.Receiver{Nodes: receiver.NewNodes(), Log: slog.New(slog.DiscardHandler),
		Keep: func(r *traces.Record) traces.Reason {
			mu.Lock()
			defer mu.Unlock()
			kept := *r
			got = append(got, &kept)
			return map[bool]traces.Reason{true: traces.Contradiction}[r.Name == "bad"]
		}}
	take := keep.HTTP(func(q *http.Request) (string, bool) {
		return q.TLS.PeerCertificates[0].Subject.CommonName, true
	})
	sender := machine(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if c, ok := traceparent.Parse(q.Header.Get(traceparent.Header)); !ok || c.Sampled {
			t.Error("the request may be recorded:", q.Header)
		}
		take.ServeHTTP(w, q)
	}))
	answer, err := sender.Export(t.Context(), spans("good", "bad"))
	if err != nil || answer.GetPartialSuccess().GetRejectedSpans() != 1 {
		t.Error(answer, err)
	}
	if len(got) != 2 || got[0].Name != "good" || got[0].Sender != "n7" || got[0].Instance != "n7" {
		t.Errorf("%+v", got)
	}
}

// TestRefusals: a sender learns from each answer whether and when to try again.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code  int
		after string
		want  codes.Code
		wait  time.Duration
	}{
		"too much":                           {429, "3", codes.ResourceExhausted, 3 * time.Second},
		"too much for long":                  {429, "100000", codes.ResourceExhausted, maxWait},
		"too much, for how long is not said": {429, "", codes.ResourceExhausted, time.Second},
		"its own fault":                      {400, "", codes.InvalidArgument, 0},
		"too large":                          {413, "", codes.InvalidArgument, 0},
		"no right yet":                       {403, "", codes.Unavailable, 0},
		"no API yet":                         {404, "", codes.Unavailable, 0},
		"nobody there":                       {503, "", codes.Unavailable, 0},
	} {
		sender := machine(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			_, _ = io.Copy(io.Discard, q.Body)
			if c.after != "" {
				w.Header().Set("Retry-After", c.after)
			}
			http.Error(w, strings.Repeat("x", 1<<20), c.code)
		}))
		_, err := sender.Export(t.Context(), spans("x"))
		s := status.Convert(err)
		var wait time.Duration
		for _, d := range s.Details() {
			wait = d.(*errdetails.RetryInfo).RetryDelay.AsDuration()
		}
		if s.Code() != c.want || wait != c.wait || len(s.Message()) > 1<<10 {
			t.Errorf("%s: %v, %v, %d bytes", name, s.Code(), wait, len(s.Message()))
		}
	}
}
