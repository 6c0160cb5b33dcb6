// Package client is the kubelet's lean way to the API server: the few calls it makes, on the kinds it knows. It takes the
// place of the generated clientset, which links and registers every kind there is: half of an idle kubelet's memory.
// Everything on the wire is protobuf, but for patches.
package client

import (
	"fmt"

	authnv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Client speaks to the API server with one identity. It is safe for concurrent use.
type Client struct {
	core, leases rest.Interface
	scheme       *runtime.Scheme
}

// New returns a client; nothing is sent yet. No request rate is imposed: the server protects itself.
func New(config *rest.Config) (*Client, error) {
	c := &Client{scheme: runtime.NewScheme()}
	metav1.AddToGroupVersion(c.scheme, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, authnv1.AddToScheme} {
		if err := add(c.scheme); err != nil {
			return nil, fmt.Errorf("register API types: %w", err)
		}
	}
	cfg := rest.CopyConfig(config)
	cfg.QPS, cfg.RateLimiter = -1, nil
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(c.scheme).WithoutConversion()
	http, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("build the HTTP client for %s: %w", cfg.Host, err)
	}
	for group, to := range map[schema.GroupVersion]*rest.Interface{corev1.SchemeGroupVersion: &c.core, coordinationv1.SchemeGroupVersion: &c.leases} {
		g := rest.CopyConfig(cfg)
		g.GroupVersion, g.APIPath = &group, "/apis"
		if group.Group == "" {
			g.APIPath = "/api"
		}
		if *to, err = rest.RESTClientForConfigAndClient(g, http); err != nil {
			return nil, fmt.Errorf("build the client for %s: %w", group, err)
		}
	}
	return c, nil
}

// Scheme knows the kinds the client speaks of.
func (c *Client) Scheme() *runtime.Scheme { return c.scheme }

// Objects lists and watches a resource of the core group, in one namespace or, with "", in all. field is a field selector, ""
// for everything.
func (c *Client) Objects(resource, namespace, field string) cache.ListerWatcher {
	return cache.NewFilteredListWatchFromClient(c.core, resource, namespace, func(o *metav1.ListOptions) {
		if field != "" {
			o.FieldSelector = field
		}
	})
}
