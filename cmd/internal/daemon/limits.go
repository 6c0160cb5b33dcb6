package daemon

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Limits bound how many requests a client sends. Upstream's components always do so; here the API server protects
// itself, and a client waits only if the user wants it.
type Limits struct {
	// QPS is the number of requests per second; 0 and less is any number.
	QPS float32
	// Burst is how many requests may be sent at once after a pause.
	Burst int
}

// AddFlags registers the flags; burst is upstream's default.
func (l *Limits) AddFlags(fs *pflag.FlagSet, burst int) {
	fs.Float32Var(&l.QPS, "kube-api-qps", 0,
		"Requests per second that a client of the API server may send; 0 and less is any number.")
	fs.IntVar(&l.Burst, "kube-api-burst", burst,
		"Requests that a client of the API server may send at once, if --kube-api-qps limits them.")
}

// Validate refuses limits that would let nothing through.
func (l Limits) Validate() error {
	if l.QPS > 0 && l.Burst < 1 {
		return fmt.Errorf("--kube-api-burst must be at least 1, not %d", l.Burst)
	}
	return nil
}

// Apply returns config, which Connect made, with the limits, and has q count how long requests wait for them. All
// copies of the result share them; another call has its own.
func (l Limits) Apply(config *rest.Config, q *Requests) *rest.Config {
	if l.QPS <= 0 {
		return config
	}
	out := rest.CopyConfig(config)
	out.Transport = limited{config.Transport, flowcontrol.NewTokenBucketRateLimiter(l.QPS, l.Burst), q}
	return out
}

// limited sends requests as fast as its limiter allows. It stands before the transport that bounds their time: a
// request that waits here is not late yet.
type limited struct {
	next     http.RoundTripper
	limiter  flowcontrol.RateLimiter
	requests *Requests
}

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	begun := time.Now()
	err := l.limiter.Wait(r.Context())
	l.requests.throttled(r, time.Since(begun))
	if err != nil {
		if r.Body != nil {
			err = errors.Join(err, r.Body.Close())
		}
		return nil, fmt.Errorf("waiting for the limit of requests: %w", err)
	}
	return l.next.RoundTrip(r)
}

// WrappedRoundTripper is how client-go finds the transport beneath.
func (l limited) WrappedRoundTripper() http.RoundTripper { return l.next }
