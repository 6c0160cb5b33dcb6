package main

import (
	"cmp"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/cmd/internal/daemon"
)

// limiter returns one that lets qps things through in a second, and burst at once; nil without a bound.
func limiter(qps *int32, burst int32) flowcontrol.RateLimiter {
	if qps == nil || *qps <= 0 {
		return nil
	}
	return flowcontrol.NewTokenBucketRateLimiter(float32(*qps), int(burst))
}

// bounded returns the connection to the API server with the bound on requests per second, if there is one.
func bounded(c *kubeletconfig.KubeletConfiguration, connection *rest.Config, requests *daemon.Requests) *rest.Config {
	if c.KubeAPIQPS == nil || *c.KubeAPIQPS <= 0 {
		return connection
	}
	limits := daemon.Limits{QPS: float32(*c.KubeAPIQPS), Burst: int(cmp.Or(c.KubeAPIBurst, 100))}
	out := limits.Apply(connection, requests)
	out.Transport = heartbeats{limited: out.Transport, free: connection.Transport}
	return out
}

// heartbeats lets through at once what keeps the node alive: the renewal of its Lease. Else a node with much to do, and
// a low bound, would be given up.
type heartbeats struct{ limited, free http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (h heartbeats) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, "/apis/coordination.k8s.io/") {
		return h.free.RoundTrip(r)
	}
	return h.limited.RoundTrip(r)
}

// WrappedRoundTripper is how client-go finds the transport beneath.
func (h heartbeats) WrappedRoundTripper() http.RoundTripper { return h.limited }
