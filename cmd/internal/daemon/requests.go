package daemon

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

// CountRequests has the requests that go over config counted at r, under the names that client-go's users give them:
// rest_client_requests_total by code ("<error>" where there was no answer), method and host, and rest_client_request_duration_seconds, the seconds to
// an answer's header, by verb and host.
func CountRequests(config *rest.Config, r prometheus.Registerer) {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rest_client_requests_total",
		Help: "Requests to the API server, by the answer's status code, method and host."}, []string{"code", "method", "host"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rest_client_request_duration_seconds",
		Help:    "Seconds from a request to the API server to its answer's header, by verb and host.",
		Buckets: []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}}, []string{"verb", "host"})
	r.MustRegister(total, took)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counted{next, total, took} })
}

// counted counts what goes through it.
type counted struct {
	next  http.RoundTripper
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

// RoundTrip implements http.RoundTripper.
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	begun := time.Now()
	resp, err := c.next.RoundTrip(r)
	code := "<error>"
	if err == nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	c.total.WithLabelValues(code, r.Method, r.URL.Host).Inc()
	c.took.WithLabelValues(r.Method, r.URL.Host).Observe(time.Since(begun).Seconds())
	return resp, err
}

// WrappedRoundTripper is how client-go finds the transport beneath.
func (c *counted) WrappedRoundTripper() http.RoundTripper { return c.next }
