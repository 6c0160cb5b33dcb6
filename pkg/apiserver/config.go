// Package apiserver composes the API server: one visible chain of filters in front of the resource API, health, metrics
// and version, and the life of the HTTPS server around it.
package apiserver

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/version"

	"bonsai/pkg/apiserver/audit"
	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/fairness"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
	"bonsai/pkg/health"
	"bonsai/pkg/trace"
)

// Config is what the server is made of.
type Config struct {
	// Listener and TLS are where and how it serves; both required. TLS gets HTTP/2 added.
	Listener net.Listener
	TLS      *tls.Config
	// Catalog is what is served; required.
	Catalog *catalog.Catalog
	// API answers resource requests; required.
	API *rest.API
	// Aggregated answers for what other servers serve; nil: there are none.
	Aggregated Aggregated
	// Authenticator and Authorizer are required.
	Authenticator authn.Authenticator
	Authorizer    authz.Authorizer
	// RolesKnown is closed when Authorizer knows the default roles and bindings: until then refusals wait. Nil: they do
	// not.
	RolesKnown <-chan struct{}
	// Auditor notes requests for the audit log; nil: there is none.
	Auditor *audit.Auditor
	// Paths are further paths (patterns of http.ServeMux): discovery, OpenAPI, the issuer's keys, profiles.
	Paths map[string]http.Handler
	// Live and Started are health checks that /healthz, /livez and /readyz ask; Ready are those that only /readyz asks.
	Live, Ready, Started []health.Check
	// Useful are health checks that /healthz and /readyz ask: a restart of the server would not mend what they find.
	Useful []health.Check
	// Metrics is what /metrics shows; required. The server adds its own.
	Metrics interface {
		prometheus.Registerer
		prometheus.Gatherer
	}
	Version version.Info
	// Fairness gives requests their turns; nil: MaxReading and MaxMutating do, plain bounds of requests in flight (0:
	// no bound).
	Fairness                *fairness.Dispatcher
	MaxReading, MaxMutating int
	// RequestTimeout is the deadline of requests that are not watches or streams. Default: 60 s.
	RequestTimeout time.Duration
	// ShutdownDelay is how long the server goes on serving at the end while /readyz fails already. Default: 0.
	ShutdownDelay time.Duration
	// SendRetryAfter answers new requests with 429 after ShutdownDelay, until those under way have been answered; then
	// the server listens no more.
	SendRetryAfter bool
	// WatchGrace is the time over which watches end after ShutdownDelay, one after the other. Default: all at once.
	WatchGrace time.Duration
	// LivezGrace is how long after the start /livez takes it that Started will succeed. Default: 0.
	LivezGrace time.Duration
	// Origins are those whose scripts may use the API in browsers; none: no script of another origin may.
	Origins []*regexp.Regexp
	// StrictTransport is the header Strict-Transport-Security of every answer; "": answers have none.
	StrictTransport string
	// MaxStreams bounds the streams of an HTTP/2 connection; a component holds a watch per resource on one. Default:
	// 1000.
	MaxStreams int
	// ShutdownTimeout is how long requests under way get at the end. Default: 10 s.
	ShutdownTimeout time.Duration
	// GoAwayChance is the probability (0 to 0.02) of asking an HTTP/2 client to connect again, to spread clients over
	// servers.
	GoAwayChance float64
	// Tracer makes the spans of requests and of the objects that they make; nil: nothing is recorded.
	Tracer *trace.Tracer
	Log    *slog.Logger
}

// Aggregated hands requests on to other servers.
type Aggregated interface {
	// Serves reports whether a request is for another server.
	Serves(info *request.Info) bool
	// Proxy answers a request that may be made and is for another server, and reports whether it is one; if not,
	// nothing was written. stream tells that it lasts.
	Proxy(w http.ResponseWriter, r *http.Request, stream bool) bool
}

// complete sets the defaults and reports the first required field that is missing. Handlers use the fields without
// checking them again.
func (c *Config) complete() error {
	for _, missing := range []struct {
		is   bool
		what string
	}{
		{c.Listener == nil, "a listener"}, {c.TLS == nil, "a TLS configuration"}, {c.Catalog == nil, "a catalog"},
		{c.API == nil, "the resource API"},
		{c.Authenticator == nil, "an authenticator"}, {c.Authorizer == nil, "an authorizer"},
		{c.Metrics == nil, "a metrics registry"}, {c.Log == nil, "a logger"},
	} {
		if missing.is {
			return errors.New("new API server: " + missing.what + " is needed")
		}
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = 60 * time.Second
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = 1000
	}
	if c.ShutdownTimeout == 0 {
		c.ShutdownTimeout = 10 * time.Second
	}
	return nil
}
