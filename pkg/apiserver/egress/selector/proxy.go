package selector

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	"bonsai/pkg/authorities"
	"bonsai/pkg/keypair"
	"bonsai/pkg/safetext"
)

// dialTimeout bounds how long a connection may take to open: to the proxy, and through it to the other side.
const dialTimeout = 30 * time.Second

// proxy is where connections go through.
type proxy struct {
	name    string // its address or socket, for errors
	connect func(ctx context.Context) (net.Conn, error)
}

// stageError is the stage of a dial that failed, as metrics call it.
type stageError struct {
	stage string
	err   error
}

const (
	stageConnect = "connect" // to the proxy
	stageProxy   = "proxy"   // from there to the other side
)

// Error implements error.
func (e *stageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *stageError) Unwrap() error { return e.err }

func (p *proxy) unreachable(err error) error {
	return &stageError{stageConnect, fmt.Errorf("connect to the egress proxy %s: %w", p.name, safetext.Error(err))}
}

func (p *proxy) refused(addr string, err error) error {
	return &stageError{stageProxy, fmt.Errorf("proxy error from %s while dialing %s, %w", p.name, addr, err)}
}

// stageOf returns the stage at which a dial failed.
func stageOf(err error) string {
	var at *stageError
	if errors.As(err, &at) {
		return at.stage
	}
	return stageConnect
}

// address is host:port of a proxy. A URL without a port has that of its scheme.
func (t *tcpTransport) address() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return t.URL
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// connect returns what connects to a proxy, over TLS if its URL is https. Certificates and authorities are read again
// when their files change.
func (t *tcpTransport) connect(log *slog.Logger) (func(ctx context.Context) (net.Conn, error), error) {
	addr, plain := t.address(), &net.Dialer{KeepAlive: 30 * time.Second}
	if t.TLSConfig == nil {
		return func(ctx context.Context) (net.Conn, error) { return plain.DialContext(ctx, "tcp", addr) }, nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	var vouch *authorities.File
	if file := t.TLSConfig.CABundle; file != "" {
		if vouch, err = authorities.NewFile(file, log); err != nil {
			return nil, fmt.Errorf("tlsConfig.caBundle: %w", err)
		}
	}
	if t.TLSConfig.ClientCert != "" {
		pair, err := keypair.Load(t.TLSConfig.ClientCert, t.TLSConfig.ClientKey, log)
		if err != nil {
			return nil, fmt.Errorf("tlsConfig.clientCert, clientKey: %w", err)
		}
		config.GetClientCertificate = pair.Client
	}
	return func(ctx context.Context) (net.Conn, error) {
		now := config
		if vouch != nil {
			now = config.Clone()
			now.RootCAs = vouch.Bundle().Pool
		}
		return (&tls.Dialer{NetDialer: plain, Config: now}).DialContext(ctx, "tcp", addr)
	}, nil
}
