package aggregator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

const (
	// recheckAfter is how long after a good answer a server is asked again.
	recheckAfter = 30 * time.Second
	// A server that did not answer is asked again after minRetry, twice that, and so on up to recheckAfter.
	minRetry = 250 * time.Millisecond
	// settleTime is how long after something has changed a server is asked: what belongs together comes one after the
	// other.
	settleTime = 50 * time.Millisecond
)

// remote is a server behind a Service, as one APIService names it. Another place, or another authority, is another
// remote.
type remote struct {
	spec      v1.APIServiceSpec
	transport *http.Transport
	wake      chan struct{}
	life      context.Context // ends when nobody names this server any more
	end       context.CancelFunc
	seen      atomic.Pointer[finding]

	openapiV2, openapiV3 later
}

// sameServer reports whether two APIServices lead to the same server under the same conditions.
func sameServer(a, b *v1.APIServiceSpec) bool {
	return apiequality.Semantic.DeepEqual(a.Service, b.Service) && a.InsecureSkipTLSVerify == b.InsecureSkipTLSVerify &&
		string(a.CABundle) == string(b.CABundle) &&
		a.Group == b.Group && a.Version == b.Version
}

// newRemote connects to nothing.
func (a *Aggregator) newRemote(ctx context.Context, spec *v1.APIServiceSpec) *remote {
	life, end := context.WithCancel(ctx)
	return &remote{life: life, spec: *spec.DeepCopy(), transport: newTransport(spec, a.cfg.Certificate, a.cfg.Dial),
		wake: make(chan struct{}, 1), end: end}
}

// newTransport reaches the server: it must have a certificate for the Service's name, and is shown ours. Nothing bounds
// how long an answer takes but the context of its request.
func newTransport(spec *v1.APIServiceSpec, certificate func() (*tls.Certificate, error),
	dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Transport {
	config := &tls.Config{MinVersion: tls.VersionTLS12,
		ServerName:         spec.Service.Name + "." + spec.Service.Namespace + ".svc",
		InsecureSkipVerify: spec.InsecureSkipTLSVerify}
	if len(spec.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(spec.CABundle) // without a certificate in it, it vouches for nobody
	}
	if certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return certificate()
		}
	}
	return &http.Transport{DialContext: dial, TLSClientConfig: config, TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 256 << 10,
		DisableCompression: true}
}

// poke has the server looked at again soon.
func (r *remote) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// watch looks after one server as long as it lives. It calls found with each finding; found reports whether it has
// written that down.
func (a *Aggregator) watch(r *remote, found func(*finding) (written bool)) {
	ctx := r.life
	defer r.transport.CloseIdleConnections()
	retry := minRetry
	for {
		was, now := r.seen.Load(), a.look(ctx, r)
		if ctx.Err() != nil {
			return
		}
		if was.same(now) {
			now = was
		}
		r.seen.Store(now)
		written := found(now)
		wait := recheckAfter
		switch reason := now.condition.Reason; {
		case !written, reason == reasonDiscovery, reason == reasonServiceAccess, reason == reasonEndpointsAccess:
			wait = retry
			retry = min(2*retry, recheckAfter)
		default: // it is well, or nothing gets better without a change that is heard of
			retry = minRetry
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-r.wake:
			timer.Stop()
			retry = minRetry
			if !pause(ctx, settleTime) {
				return
			}
		}
	}
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
