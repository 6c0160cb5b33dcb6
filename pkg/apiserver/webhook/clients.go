package webhook

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// maxClients is how many clients are kept: more hosts with other authorities than a cluster has.
	maxClients = 256
	// maxConns is how many connections one webhook, or endpoint of its Service, gets at a time; calls beyond wait
	// within their timeout.
	maxConns = 200
	// maxIdle is how many connections to one webhook, or endpoint of its Service, are kept open for idle, and
	// maxIdleOfAll how many to all its endpoints.
	maxIdle      = 16
	maxIdleOfAll = 128
	idle         = 30 * time.Second
	// dialTimeout is for each endpoint of a Service; the call's timeout ends them all.
	dialTimeout = 5 * time.Second
)

// key tells clients apart: webhooks of one host and authority share their connections.
type key struct {
	service bool
	host    string // with port
	ca      [sha256.Size]byte
	as      *Credentials
}

// clients are the HTTP clients in use. The zero value is ready.
type clients struct {
	mu    sync.Mutex
	known map[key]*client // guarded by mu; at most maxClients
	clock uint64          // guarded by mu; counts uses
}

type client struct {
	*http.Client
	used uint64 // the clock at the last use
}

// of returns the client for h, whose URL has host.
func (c *clients) of(h *Hook, host string, cfg *Config) (*http.Client, error) {
	k := key{service: h.Service != nil, host: host, ca: sha256.Sum256(h.CABundle), as: h.Credentials}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock++
	if have := c.known[k]; have != nil {
		have.used = c.clock
		return have.Client, nil
	}
	transport, err := newTransport(h, cfg)
	if err != nil {
		return nil, err
	}
	if len(c.known) >= maxClients {
		c.forgetOldest()
	}
	if c.known == nil {
		c.known = map[key]*client{}
	}
	made := &client{used: c.clock, Client: &http.Client{
		Transport: h.Credentials.around(transport),
		// A webhook must not send the server to where its configuration does not.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	c.known[k] = made
	return made.Client, nil
}

// forgetOldest drops the client that was used least recently. Calls under way on it end as they would. The caller holds
// mu.
func (c *clients) forgetOldest() {
	var oldest key
	for k, e := range c.known {
		if have := c.known[oldest]; have == nil || e.used < have.used {
			oldest = k
		}
	}
	c.known[oldest].CloseIdleConnections()
	delete(c.known, oldest)
}

// close forgets all clients.
func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.known {
		e.CloseIdleConnections()
	}
	c.known = nil
}

// errCABundle is upstream's word for a bundle in which there is no certificate.
var errCABundle = errors.New("unable to load root certificates: unable to parse bytes as PEM block")

func newTransport(h *Hook, cfg *Config) (http.RoundTripper, error) {
	// HTTP/1.1, as upstream: HTTP/2 would have all calls wait for one connection.
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if c := h.Credentials; c != nil && len(c.cert) > 0 {
		pair, err := tls.X509KeyPair(c.cert, c.key)
		if err != nil {
			return nil, fmt.Errorf("the client certificate for webhooks: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if len(h.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(h.CABundle) {
			return nil, errCABundle
		}
	}
	t := &http.Transport{
		TLSClientConfig: config, TLSHandshakeTimeout: 10 * time.Second, DialContext: dialing(cfg.ToURLs),
		Proxy:           http.ProxyFromEnvironment,
		MaxConnsPerHost: maxConns, MaxIdleConnsPerHost: maxIdle, MaxIdleConns: maxIdleOfAll, IdleConnTimeout: idle,
	}
	s := h.Service
	if s == nil {
		return t, nil
	}
	t.Proxy = nil
	config.ServerName = s.host()
	dial := dialing(cfg.ToServices)
	t.DialContext = func(ctx context.Context, network, first string) (net.Conn, error) {
		return dialService(ctx, cfg.Resolver, s, first, func(addr string) (net.Conn, error) {
			return dial(ctx, network, addr)
		})
	}
	return balanced{cfg.Resolver, s, t}, nil
}

// dialing returns through within the time that one endpoint has; nil: a direct way.
func dialing(through func(ctx context.Context, network, addr string) (net.Conn, error)) func(ctx context.Context,
	network, addr string) (net.Conn, error) {
	if through == nil {
		return (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		return through(ctx, network, addr)
	}
}

// dialService connects to first, an endpoint of a Service, or to the next one that takes the connection.
func dialService(ctx context.Context, r Resolver, s *Service, first string,
	dial func(addr string) (net.Conn, error)) (net.Conn, error) {
	conn, err := dial(first)
	if err == nil || ctx.Err() != nil {
		return conn, err
	}
	others, gone := r.Resolve(ctx, s.Namespace, s.Name, s.port())
	if gone != nil {
		return nil, gone
	}
	for _, addr := range others {
		if addr == first {
			continue
		}
		if conn, err = dial(addr); err == nil || ctx.Err() != nil {
			return conn, err
		}
	}
	return nil, err
}
