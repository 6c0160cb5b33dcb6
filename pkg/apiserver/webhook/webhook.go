// Package webhook calls webhooks: it posts a review to an HTTPS server that a configuration names and returns the
// answer. Who calls decides what the bytes say. Everything that a webhook can do to the server is bounded here: the
// time, the bytes of its answer, the connections to it and the clients kept for configurations.
//
// As upstream, a configuration may name any address, also on loopback: who may write webhook configurations is trusted
// with that. What is sent carries no credentials but those that the server's own configuration has for the host,
// redirects are not followed, and the server must have a certificate for the name it is called by.
package webhook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	"bonsai/pkg/safetext"
	"bonsai/pkg/trace"
	"bonsai/pkg/trace/traceparent"
)

// Hook says where a webhook is. It is not changed any more when it is called.
type Hook struct {
	// URL is https://host[:port]/path; "" if Service is set.
	URL     string
	Service *Service
	// CABundle is PEM: who may have signed the webhook's certificate. Empty: the authorities of the system.
	CABundle []byte
	// Credentials are shown to the webhook; nil: none.
	Credentials *Credentials
}

// Service is a webhook behind a Service of the cluster, whose certificate is for Name.Namespace.svc.
type Service struct {
	Namespace, Name string
	// Path of the URL; "" is /.
	Path string
	// Port of the Service; 0 is 443.
	Port int32
}

// Resolver finds Services.
type Resolver interface {
	// Resolve returns host:port of all endpoints of a Service's port, in the order in which they are tried; never none
	// without an error.
	Resolve(ctx context.Context, ns, name string, port int32) ([]string, error)
}

// userAgent is what upstream's server calls itself.
const userAgent = "kube-apiserver-admission"

// Config says how webhooks are reached.
type Config struct {
	Resolver Resolver
	// ToServices and ToURLs open the connections to the endpoints of Services and to the hosts of URLs through a proxy;
	// nil: they are direct.
	ToServices, ToURLs func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Client calls webhooks. It is safe for concurrent use.
type Client struct {
	cfg     Config
	clients clients
}

// New returns a Client; Run ends it.
func New(cfg Config) *Client { return &Client{cfg: cfg} }

// Run waits for the end of ctx and then closes all connections that are not in use.
func (c *Client) Run(ctx context.Context) error {
	<-ctx.Done()
	c.clients.close()
	return nil
}

// Call posts body, which is JSON, and returns the body of the answer. It ends with ctx or after timeout, which the URL
// names, as upstream's does. An answer longer than limit bytes is an error. Errors are worded as upstream's client
// words them; one about the Hook itself is a *HookError.
func (c *Client) Call(ctx context.Context, to *Hook, body []byte, timeout time.Duration, limit int64) ([]byte, error) {
	at, err := to.location(timeout)
	if err != nil {
		return nil, &HookError{err}
	}
	client, err := c.clients.of(to, at.Host, &c.cfg)
	if err != nil {
		return nil, &HookError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = http.Header{"Accept": {"application/json, */*"}, "Content-Type": {"application/json"},
		"User-Agent": {userAgent}}
	if parent := trace.Outgoing(ctx); parent != "" {
		r.Header.Set(traceparent.Header, parent)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, safetext.Error(err)
	}
	defer answer.Body.Close() //nolint:errcheck // everything was read, or the connection is given up
	b, err := read(answer.Body, limit)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode < http.StatusOK || answer.StatusCode > http.StatusPartialContent {
		return nil, Refusal(answer, b)
	}
	if len(b) == 0 {
		return nil, fmt.Errorf("0-length response with status code: %d and content type: %s", answer.StatusCode,
			cmp.Or(safetext.Text(answer.Header.Get("Content-Type")), "application/json"))
	}
	return b, nil
}

// HookError is a Hook that cannot be called because of what it says itself.
type HookError struct{ Err error }

// Error implements error.
func (e *HookError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *HookError) Unwrap() error { return e.Err }

// read reads an answer of at most limit bytes.
func read(from io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err != nil {
		return nil, fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("the response is longer than %d bytes", limit)
	}
	return b, nil
}

// errNowhere is a Hook without a place.
var errNowhere = errors.New("webhook configuration must have either service or URL")

// location is where to post. As upstream's client has it, the path is cleaned and loses a slash at its end.
func (h *Hook) location(timeout time.Duration) (*url.URL, error) {
	var at *url.URL
	switch {
	case h.Service != nil:
		at = &url.URL{Scheme: "https", Host: h.Service.host() + ":" + strconv.Itoa(int(h.Service.port())),
			Path: h.Service.Path}
	case h.URL != "":
		u, err := url.Parse(h.URL)
		if err != nil {
			return nil, fmt.Errorf("unparsable URL: %w", safetext.URLError(err))
		}
		at = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	default:
		return nil, errNowhere
	}
	at.Path = path.Join("/", at.Path)
	at.RawQuery = url.Values{"timeout": {timeout.String()}}.Encode()
	return at, nil
}

// host is the name that the Service's certificate must be for.
func (s *Service) host() string { return s.Name + "." + s.Namespace + ".svc" }

func (s *Service) port() int32 {
	if s.Port == 0 {
		return 443
	}
	return s.Port
}
