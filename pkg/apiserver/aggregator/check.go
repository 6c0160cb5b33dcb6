package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"

	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/safetext"
)

const (
	// checkTimeout is how long a server has to say what it serves.
	checkTimeout = 5 * time.Second
	// maxAttempts is how many endpoints of a Service are asked at the same time, the first good answer counts.
	maxAttempts = 5
	// maxDiscovery is how large the answer may be, in bytes.
	maxDiscovery = 4 << 20
)

// look finds out whether the server can be reached and what it serves. The Service is checked before the server is
// asked: its condition names the cause, where a failed connection would only say that nothing answers.
func (a *Aggregator) look(ctx context.Context, r *remote) *finding {
	if condition, ok := a.cfg.Cluster.reachable(ctx, r.spec.Service); !ok {
		return &finding{condition: condition}
	}
	resources, err := a.ask(ctx, r)
	if err != nil {
		return &finding{condition: unavailable(reasonDiscovery, "%v", err)}
	}
	return &finding{condition: passed(), resources: resources}
}

// ask asks endpoints of the server for the resources of the group version. One endpoint that answers is enough, so one
// broken replica does not take the group away. The channel has room for every answer: goroutines that are late end
// without a reader, by checkTimeout at the latest. If all fail, the last error is the one that is shown.
func (a *Aggregator) ask(ctx context.Context, r *remote) ([]apidiscoveryv2.APIResourceDiscovery, error) {
	addresses, err := a.cfg.Cluster.addresses(ctx, r.spec.Service)
	if err != nil {
		return nil, err
	}
	addresses = addresses[:min(len(addresses), maxAttempts)]
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	type answer struct {
		resources []apidiscoveryv2.APIResourceDiscovery
		err       error
	}
	answers := make(chan answer, len(addresses))
	for _, host := range addresses {
		go func() {
			at := &url.URL{Scheme: "https", Host: host, Path: "/apis/" + r.spec.Group + "/" + r.spec.Version}
			list, err := a.resourcesAt(ctx, r, at)
			if err != nil {
				err = fmt.Errorf("failing or missing response from %v: %w", at, err)
			}
			answers <- answer{list, err}
		}()
	}
	for range addresses {
		got := <-answers
		if got.err == nil {
			return got.resources, nil
		}
		err = got.err
	}
	return nil, err
}

// resourcesAt asks one endpoint. What it serves counts only if it says it in the form of an APIResourceList; else the
// server is there, and nothing is known of it.
func (a *Aggregator) resourcesAt(ctx context.Context, r *remote, at *url.URL) ([]apidiscoveryv2.APIResourceDiscovery,
	error) {
	code, body, err := a.get(ctx, r, at, "application/json", maxDiscovery)
	if err != nil {
		return nil, err
	}
	if code == http.StatusLoopDetected {
		return nil, fmt.Errorf("bad status from %v: %d: %s", at, code, loopMessage)
	}
	if code < http.StatusOK || code >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("bad status from %v: %d", at, code)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		a.cfg.Log.Info("a server's discovery cannot be read", "url", at.String(), "err", err)
		return nil, nil
	}
	return resourcesOf(list.APIResources, r.spec.Group, r.spec.Version), nil
}

// get asks the server as the aggregator itself. Redirects are answers like others: the server must not lead this one
// elsewhere. It reads one byte more than limit, to distinguish a body of that length from a longer one. Via lets a
// server that leads back here be recognized as a loop.
func (a *Aggregator) get(ctx context.Context, r *remote, at *url.URL, accept string, limit int64) (code int,
	body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Via", a.via)
	transport.SetAuthProxyHeaders(req, "system:kube-aggregator", "", []string{request.GroupMasters}, nil)
	client := http.Client{Transport: r.transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	answer, err := client.Do(req)
	if err != nil {
		return 0, nil, safetext.Error(err)
	}
	defer answer.Body.Close() //nolint:errcheck // everything was read, or the connection is given up
	if body, err = io.ReadAll(io.LimitReader(answer.Body, limit+1)); err != nil {
		return 0, nil, err
	}
	if int64(len(body)) > limit {
		return 0, nil, fmt.Errorf("the response is longer than %d bytes", limit)
	}
	return answer.StatusCode, body, nil
}
