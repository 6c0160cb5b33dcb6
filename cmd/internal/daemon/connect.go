package daemon

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// How long a component waits for an API server that is silent. A connection is given up after silence and answer
// together, which is less than half of a node's lease (40 s) and less than a leader tries to renew its own (10 s): the
// next connection is in time. A request that is not a watch gets a little longer than the server itself takes
// (--request-timeout, 1 min).
const (
	silenceTimeout = 5 * time.Second // without a frame, after which a ping is sent
	answerTimeout  = 3 * time.Second // for the answer to the ping
	dialTimeout    = 10 * time.Second
	callTimeout    = 70 * time.Second
	unusedTimeout  = 90 * time.Second // without a request, after which a connection is closed
)

// Connect is config over a transport of its own, which all copies of the result share, and which waits for a silent
// server only as long as the timeouts above. Credentials for TLS are in the transport and not in the result's fields
// any more.
func Connect(config *rest.Config) (*rest.Config, error) {
	t, err := newTransport(config)
	if err != nil {
		return nil, err
	}
	return over(config, t), nil
}

// ConnectAs is Connect with the client certificate that current returns at each handshake in place of config's; nil is
// none. The function that it returns closes all connections: whoever has a new certificate is not known by the old one
// any longer.
func ConnectAs(config *rest.Config, current func() *tls.Certificate) (*rest.Config, func(), error) {
	t, err := newTransport(config)
	if err != nil {
		return nil, nil, err
	}
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.Certificates = nil
		t.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return cmp.Or(current(), &tls.Certificate{}), nil
		}
	}
	dialer := connrotation.NewDialer(t.DialContext)
	t.DialContext = dialer.DialContext
	return over(config, t), dialer.CloseAll, nil
}

// over is config with all of its connection in t.
func over(config *rest.Config, t *http.Transport) *rest.Config {
	out := rest.CopyConfig(config)
	out.Transport, out.TLSClientConfig, out.Dial, out.Proxy = bounded{t}, rest.TLSClientConfig{}, nil, nil
	return out
}

func newTransport(config *rest.Config) (*http.Transport, error) {
	creds, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the TLS credentials for %s: %w", config.Host, err)
	}
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: creds, TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     unusedTimeout,
		MaxIdleConnsPerHost: 25,
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		DisableCompression:  config.DisableCompression,
		ForceAttemptHTTP2:   true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: silenceTimeout, PingTimeout: answerTimeout,
			WriteByteTimeout: silenceTimeout + answerTimeout}}
	if config.Dial != nil {
		t.DialContext = config.Dial
	}
	if config.Proxy != nil {
		t.Proxy = config.Proxy
	}
	return t, nil
}

// bounded bounds the time of a request and its answer; only a watch may go on for longer.
type bounded struct{ next *http.Transport }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if watches(r) {
		return b.next.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	resp, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &boundedBody{resp.Body, cancel}
	return resp, nil
}

// watches reports whether a request's answer goes on for as long as there is something to tell.
func watches(r *http.Request) bool {
	w := r.URL.Query().Get("watch")
	return w == "true" || w == "1"
}

// CloseIdleConnections lets an http.Client close idle connections.
func (b bounded) CloseIdleConnections() { b.next.CloseIdleConnections() }

// WrappedRoundTripper is how client-go finds the transport beneath.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

// boundedBody ends the request's time with its body.
type boundedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
