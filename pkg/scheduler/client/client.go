// Package client is the scheduler's lean way to the API server: reflectors that feed plain stores, and the few writes that
// scheduling needs. It takes the place of a generated clientset and of shared informers, whose copies and queues cost more
// than the decisions. Everything on the wire is protobuf, but for patches.
package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Client speaks to the API server with one identity.
type Client struct {
	http   *http.Client
	base   *url.URL
	groups map[schema.GroupVersion]rest.Interface
	params runtime.ParameterCodec
}

// New returns a client. No request rate is imposed: the server protects itself.
func New(config *rest.Config) (*Client, error) {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, policyv1.AddToScheme, eventsv1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("registering API types: %w", err)
		}
	}
	cfg := rest.CopyConfig(config)
	cfg.QPS, cfg.RateLimiter = -1, nil
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	hc, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("building the HTTP client for %s: %w", cfg.Host, err)
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("server address %q: %w", cfg.Host, err)
	}
	c := &Client{http: hc, base: base, groups: map[schema.GroupVersion]rest.Interface{}, params: runtime.NewParameterCodec(s)}
	codecs := serializer.NewCodecFactory(s)
	for _, gv := range []schema.GroupVersion{corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion, policyv1.SchemeGroupVersion, eventsv1.SchemeGroupVersion} {
		g := rest.CopyConfig(cfg)
		g.GroupVersion, g.APIPath = &gv, "/apis"
		if gv.Group == "" {
			g.APIPath = "/api"
		}
		g.NegotiatedSerializer = codecs.WithoutConversion()
		if c.groups[gv], err = rest.RESTClientForConfigAndClient(g, hc); err != nil {
			return nil, fmt.Errorf("building the client for %s: %w", gv, err)
		}
	}
	return c, nil
}

func (c *Client) core() rest.Interface { return c.groups[corev1.SchemeGroupVersion] }

// Leases gives access to the leases that leader election needs.
func (c *Client) Leases() Leases { return Leases{c.groups[coordinationv1.SchemeGroupVersion]} }

// Leases reads and writes Lease objects.
type Leases struct{ rest rest.Interface }

// Get reads a Lease.
func (l Leases) Get(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	out := &coordinationv1.Lease{}
	return out, l.rest.Get().Namespace(namespace).Resource("leases").Name(name).Do(ctx).Into(out)
}

// Create makes a Lease.
func (l Leases) Create(ctx context.Context, in *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	out := &coordinationv1.Lease{}
	return out, l.rest.Post().Namespace(in.Namespace).Resource("leases").Body(in).Do(ctx).Into(out)
}

// Update replaces a Lease of which in is the newest state.
func (l Leases) Update(ctx context.Context, in *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	out := &coordinationv1.Lease{}
	return out, l.rest.Put().Namespace(in.Namespace).Resource("leases").Name(in.Name).Body(in).Do(ctx).Into(out)
}
