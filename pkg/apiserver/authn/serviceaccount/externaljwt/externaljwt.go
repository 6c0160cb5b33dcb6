// Package externaljwt has service account tokens signed by another process of this machine, which alone has the private
// key (--service-account-signing-endpoint). The process listens with gRPC on a Unix socket. Its public keys verify
// tokens, and are published.
//
// Nothing that the process returns is believed unseen: a token leaves this package only if one of the process's own
// published keys verifies it over exactly the claims that were to be signed.
package externaljwt

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	signerapi "k8s.io/externaljwt/apis/v1"

	"bonsai/pkg/apiserver/authn/serviceaccount"
	"bonsai/pkg/apiserver/localgrpc"
)

const (
	// startTimeout is how long a start waits for the process.
	startTimeout = 20 * time.Second
	// callTimeout bounds each call.
	callTimeout = 10 * time.Second
	// maxAnswer bounds an answer in bytes, maxCalls the calls under way.
	maxAnswer = 1 << 20
	maxCalls  = 64

	// minLifetime is the least that the process must allow tokens to live.
	minLifetime = 10 * time.Minute
	// maxLifetime keeps what the process names within a Duration; it is --service-account-max-token-expiration's.
	maxLifetime = 1 << 32 * time.Second
)

// The methods, as metrics name them.
const (
	methodSign      = signerapi.ExternalJWTSigner_Sign_FullMethodName
	methodFetchKeys = signerapi.ExternalJWTSigner_FetchKeys_FullMethodName
	methodMetadata  = signerapi.ExternalJWTSigner_Metadata_FullMethodName
)

// Config says which process signs.
type Config struct {
	// Socket is its path; "@name" is an abstract socket.
	Socket  string
	Metrics prometheus.Registerer
	Log     *slog.Logger
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Signer signs by the process, and knows its keys.
type Signer struct {
	cfg     Config
	conn    *localgrpc.Conn
	client  signerapi.ExternalJWTSignerClient
	metrics *metrics
	longest time.Duration

	keys atomic.Pointer[keySet]

	mu     sync.Mutex
	flight *flight   // guarded by mu: the question for keys under way; nil: there is none
	failed time.Time // guarded by mu: when keys were last asked for in vain
}

var (
	_ serviceaccount.Signer = (*Signer)(nil)
	_ serviceaccount.Keys   = (*Signer)(nil)
)

// Open connects to the process, and returns when it has told its keys and how long tokens may live. It fails if the
// process does not do so in 20 seconds, or returns what is not valid.
func Open(ctx context.Context, cfg Config) (*Signer, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	conn, err := localgrpc.Dial(localgrpc.Config{Name: "external signer of service account tokens", Socket: cfg.Socket,
		Timeout: callTimeout, MaxAnswer: maxAnswer, MaxCalls: maxCalls})
	if err != nil {
		return nil, err
	}
	s := &Signer{cfg: cfg, conn: conn, client: signerapi.NewExternalJWTSignerClient(conn),
		metrics: newMetrics(cfg.Metrics)}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.begin(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("the external signer of service account tokens at %s: %w", cfg.Socket, err)
	}
	return s, nil
}

func (s *Signer) begin(ctx context.Context) error {
	err := s.fetch(ctx)
	for err != nil && waiting(err) && ctx.Err() == nil { // one call is shorter than the start may be
		err = s.fetch(ctx)
	}
	if err != nil {
		return err
	}
	var resp *signerapi.MetadataResponse
	if err := s.call(ctx, methodMetadata, func(ctx context.Context) (err error) {
		resp, err = s.client.Metadata(ctx, &signerapi.MetadataRequest{})
		return err
	}); err != nil {
		return fmt.Errorf("asking how long tokens may live: %w", err)
	}
	seconds := resp.GetMaxTokenExpirationSeconds()
	if seconds < int64(minLifetime/time.Second) {
		return fmt.Errorf("max token life supported by external-jwt-signer (%ds) is less than acceptable (min %ds)",
			seconds, int64(minLifetime/time.Second))
	}
	s.longest = maxLifetime
	if seconds < int64(maxLifetime/time.Second) {
		s.longest = time.Duration(seconds) * time.Second
	}
	return nil
}

// MaxLifetime is the longest life of a token that the process allows.
func (s *Signer) MaxLifetime() time.Duration { return s.longest }

// Close ends the connection.
func (s *Signer) Close() error { return s.conn.Close() }

// call makes one call, and counts it.
func (s *Signer) call(ctx context.Context, method string, do func(context.Context) error) error {
	begin := time.Now()
	err := s.conn.Call(ctx, do)
	s.metrics.called(method, time.Since(begin), err)
	return err
}
