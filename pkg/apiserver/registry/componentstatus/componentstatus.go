// Package componentstatus answers for componentstatuses: whether the components behind the API server are healthy,
// asked when someone wants to know. The kind is deprecated since v1.19, as it knows only components at fixed places;
// `kubectl get cs` still shows it.
package componentstatus

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/safetext"
)

// Component is one whose health is shown under Name. Healthy returns what the component says of itself; an error is why
// it is not healthy.
type Component struct {
	Name    string
	Healthy func(ctx context.Context) (message string, err error)
}

// The limits of one check. Whoever may read the resource makes the server ask, so an answer is bounded in time and
// bytes.
const (
	timeout   = 5 * time.Second
	mostBytes = 10 << 10
)

// dialer opens connections, as net.Dialer's DialContext does.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// httpProbe is the check of an endpoint that answers 200 while the component is healthy, as /healthz does. dial
// connects to it; nil: it is connected to directly.
func httpProbe(url string, config *tls.Config, dial dialer) func(context.Context) (string, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: dial, TLSClientConfig: config,
		DisableKeepAlives: true}}
	return func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return "", safetext.URLError(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return "", safetext.Error(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, mostBytes))
		switch {
		case err != nil:
			return "", err
		case resp.StatusCode != http.StatusOK:
			return "", fmt.Errorf("HTTP probe failed with statuscode: %d: %s", resp.StatusCode, body)
		}
		return string(body), nil
	}
}

// local is how components on the same host are asked: nothing secret goes there, and their certificates are often their
// own.
func local() *tls.Config { return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} }

// Defaults are the components that Kubernetes shows: the controller manager and the scheduler on this host, at their
// usual ports, and the etcd servers, which config (nil: without TLS) and dial (nil: directly) connect to.
func Defaults(etcd []string, config *tls.Config, dial dialer) []Component {
	out := []Component{
		{Name: "controller-manager", Healthy: httpProbe("https://127.0.0.1:10257/healthz", local(), nil)},
		{Name: "scheduler", Healthy: httpProbe("https://127.0.0.1:10259/healthz", local(), nil)},
	}
	for i, server := range etcd {
		out = append(out, Component{Name: fmt.Sprintf("etcd-%d", i), Healthy: etcdHealth(server, config, dial)})
	}
	return out
}

// etcdHealth asks an etcd server's /health, whose message is "ok" as Kubernetes shows it.
func etcdHealth(server string, config *tls.Config, dial dialer) func(context.Context) (string, error) {
	check := httpProbe(strings.TrimSuffix(server, "/")+"/health", config, dial)
	return func(ctx context.Context) (string, error) {
		_, err := check(ctx)
		return "ok", err
	}
}

// Lister answers for the resource.
type Lister struct{ components []Component }

var _ registry.Lister = (*Lister)(nil)

// New returns the lister of components, in their order.
func New(components []Component) *Lister { return &Lister{components} }

// List implements registry.Lister: all components are asked at once.
func (l *Lister) List(ctx context.Context) ([]runtime.Object, error) {
	out := make([]runtime.Object, len(l.components))
	var all sync.WaitGroup
	for i, c := range l.components {
		all.Go(func() { out[i] = observe(ctx, c) })
	}
	all.Wait()
	return out, nil
}

func observe(ctx context.Context, c Component) *corev1.ComponentStatus {
	message, err := c.Healthy(ctx)
	health := corev1.ComponentCondition{Type: corev1.ComponentHealthy, Status: corev1.ConditionTrue, Message: message}
	if err != nil {
		health.Status, health.Message = corev1.ConditionFalse, err.Error()
	}
	return &corev1.ComponentStatus{ObjectMeta: metav1.ObjectMeta{Name: c.Name},
		Conditions: []corev1.ComponentCondition{health}}
}
