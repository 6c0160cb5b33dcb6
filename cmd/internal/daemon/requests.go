package daemon

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

// Requests counts what a component asks of its API server, under the names that client-go's users give that:
// rest_client_requests_total by code ("<error>" where there was no answer), method and host; by verb and host the
// seconds to an answer's header (rest_client_request_duration_seconds), the bytes of the bodies
// (rest_client_request_size_bytes, rest_client_response_size_bytes; no watch has one) and the seconds that a request
// waited for its turn (rest_client_rate_limiter_duration_seconds). A nil *Requests counts nothing.
type Requests struct {
	total                        *prometheus.CounterVec
	took, sent, received, waited *prometheus.HistogramVec
}

// NewRequests registers the figures at r. A series is made by the first request that it counts.
func NewRequests(r prometheus.Registerer) *Requests {
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "rest_client_" + name, Help: help, Buckets: buckets},
			[]string{"verb", "host"})
	}
	seconds := []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}
	bytes := []float64{64, 256, 512, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20}
	q := &Requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rest_client_requests_total",
			Help: "Requests to the API server, by the answer's status code, method and host."},
			[]string{"code", "method", "host"}),
		took: histogram("request_duration_seconds",
			"Seconds from a request to the API server to its answer's header, by verb and host.", seconds),
		sent: histogram("request_size_bytes", "Bytes of a request's body to the API server, by verb and host.",
			bytes),
		received: histogram("response_size_bytes",
			"Bytes of the body of the API server's answer, by verb and host; a watch is not counted.", bytes),
		waited: histogram("rate_limiter_duration_seconds",
			"Seconds that a request to the API server waited for the limit of requests, by verb and host.", seconds),
	}
	r.MustRegister(q.total, q.took, q.sent, q.received, q.waited)
	return q
}

// Count has the requests that go over config counted.
func (q *Requests) Count(config *rest.Config) {
	if q != nil {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counted{next, q} })
	}
}

// throttled notes how long a request waited for its turn.
func (q *Requests) throttled(r *http.Request, d time.Duration) {
	if q != nil {
		q.waited.WithLabelValues(r.Method, r.URL.Host).Observe(d.Seconds())
	}
}

// counted counts what goes through it.
type counted struct {
	next http.RoundTripper
	*Requests
}

// RoundTrip implements http.RoundTripper.
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	method, host := r.Method, r.URL.Host
	begun := time.Now()
	resp, err := c.next.RoundTrip(r)
	code := "<error>"
	if err == nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	c.total.WithLabelValues(code, method, host).Inc()
	c.took.WithLabelValues(method, host).Observe(time.Since(begun).Seconds())
	if r.ContentLength >= 0 {
		c.sent.WithLabelValues(method, host).Observe(float64(r.ContentLength))
	}
	if err == nil && resp.StatusCode != http.StatusSwitchingProtocols && !watches(r) {
		resp.Body = &countedBody{ReadCloser: resp.Body, total: c.received.WithLabelValues(method, host)}
	}
	return resp, err
}

// WrappedRoundTripper is how client-go finds the transport beneath.
func (c *counted) WrappedRoundTripper() http.RoundTripper { return c.next }

// countedBody counts the bytes of an answer's body, as one figure when it is closed.
type countedBody struct {
	io.ReadCloser
	n     int
	total prometheus.Observer // nil: it has been told
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += n
	return n, err
}

// Close implements io.Closer.
func (b *countedBody) Close() error {
	if b.total != nil {
		b.total.Observe(float64(b.n))
		b.total = nil
	}
	return b.ReadCloser.Close()
}
