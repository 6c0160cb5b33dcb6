package controller

import (
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Client speaks to the API server with one identity. It takes the place of a generated clientset, which would pull in every
// kind of every group; a Resource gives typed access to one kind. Requests and answers are protobuf.
type Client struct {
	config *rest.Config
	http   *http.Client
	codecs serializer.CodecFactory
	params runtime.ParameterCodec

	mu  sync.Mutex
	gvs map[schema.GroupVersion]rest.Interface
}

// NewClient returns a client for the kinds of s. No request rate is imposed: the server protects itself.
func NewClient(config *rest.Config, s *runtime.Scheme) (*Client, error) {
	c := rest.CopyConfig(config)
	c.QPS, c.RateLimiter = -1, nil
	// Deprecation warnings are for people; the kinds we use are chosen knowingly.
	c.WarningHandler, c.WarningHandlerWithContext = rest.NoWarnings{}, nil
	c.ContentType = runtime.ContentTypeProtobuf
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	hc, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("building the HTTP client for %s: %w", c.Host, err)
	}
	return &Client{
		config: c, http: hc, codecs: serializer.NewCodecFactory(s), params: runtime.NewParameterCodec(s),
		gvs: map[schema.GroupVersion]rest.Interface{},
	}, nil
}

// Config is the client's configuration, to build special clients from; do not change it.
func (c *Client) Config() *rest.Config { return c.config }

// HTTP is the transport that all requests of this client share.
func (c *Client) HTTP() *http.Client { return c.http }

// group returns the REST client of one group version. It can only fail for a configuration that NewClient refuses.
func (c *Client) group(gv schema.GroupVersion) (rest.Interface, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.gvs[gv]; r != nil {
		return r, nil
	}
	cfg := rest.CopyConfig(c.config)
	cfg.GroupVersion, cfg.APIPath = &gv, "/apis"
	if gv.Group == "" {
		cfg.APIPath = "/api"
	}
	cfg.NegotiatedSerializer = c.codecs.WithoutConversion()
	r, err := rest.RESTClientForConfigAndClient(cfg, c.http)
	if err != nil {
		return nil, fmt.Errorf("building the client for %s: %w", gv, err)
	}
	c.gvs[gv] = r
	return r, nil
}
