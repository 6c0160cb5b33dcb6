// Package forward hands messages of OTLP on to the API of traces of a cluster, for the components of a machine on which
// no traces are kept. OTLP has no TLS in upstream's TracingConfiguration, and components have no client for an API:
// they send to a socket on their machine, and the Forwarder sends on, as the user of a kubeconfig.
//
// It keeps nothing. A sender waits for the API's answer, and has what was not taken in its own queue, which is bounded.
package forward

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bonsai/pkg/retryinfo"
	"bonsai/pkg/safetext"
	"bonsai/pkg/trace/traceparent"
	"bonsai/pkg/traces"
)

const (
	// maxAnswer bounds what is read of an answer. Those of OTLP have some dozens of bytes.
	maxAnswer = 64 << 10
	// maxWait bounds how long a sender is to wait that came too soon.
	maxWait = time.Minute
)

// Forwarder sends messages on. It is safe for concurrent use.
type Forwarder struct {
	// Client authenticates itself to the API server, and the API server to it.
	Client *http.Client
	// URL is that of the cluster's resource spans.
	URL string
	Log *slog.Logger

	failing atomic.Bool
}

// Send sends a message, an ExportTraceServiceRequest, and returns the answer to it. An error is one of gRPC by which
// the sender knows whether and when to try again. ctx bounds the wait.
func (f *Forwarder) Send(ctx context.Context, message []byte) ([]byte, error) {
	answer, err := f.post(ctx, message)
	switch lost := err != nil; {
	case lost && ctx.Err() != nil:
	case lost && f.failing.CompareAndSwap(false, true):
		f.Log.Warn("the cluster does not take spans", "to", f.URL, "err", safetext.Error(err))
	case !lost && f.failing.CompareAndSwap(true, false):
		f.Log.Info("the cluster takes spans again", "to", f.URL)
	}
	return answer, err
}

func (f *Forwarder) post(ctx context.Context, message []byte) ([]byte, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL, bytes.NewReader(message))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	q.Header.Set("Content-Type", traces.MediaType)
	q.Header.Set(traceparent.Header, unrecorded())
	resp, err := f.Client.Do(q)
	if err != nil {
		return nil, status.Error(codes.Unavailable, safetext.Error(err).Error())
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, status.Error(codes.Unavailable, safetext.Error(err).Error())
	}
	if resp.StatusCode == http.StatusOK {
		return answer, nil
	}
	text := fmt.Sprintf("%s: %s", resp.Status, safetext.Text(string(answer)))
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return nil, retryinfo.Error(text, retryAfter(resp.Header))
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return nil, status.Error(codes.InvalidArgument, text)
	}
	// All others may end: an API server that starts, an APIService or a right that is not there yet.
	return nil, status.Error(codes.Unavailable, text)
}

// unrecorded is a trace context that asks for the request not to be recorded: else each message would make a span of
// the API server, which would be sent in a message, and so on without end.
func unrecorded() string {
	c := traceparent.Context{}
	rand.Read(c.TraceID[:])
	rand.Read(c.Parent[:])
	return c.String()
}

// retryAfter is how long a sender is to wait: a second, if the answer does not say.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return time.Second
	}
	return min(time.Duration(seconds)*time.Second, maxWait)
}
