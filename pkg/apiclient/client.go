// Package apiclient is how every component talks to the API server: typed requests (Client, Resource), list and watch
// (ListWatch, Follow) and an informer that stores objects (Informer), over client-go's rest and reflector. It stands in
// for the generated clientsets and shared informer factories, which link and register every kind of every group: half
// of an idle component's memory. A component imports the group packages below this one that it speaks of (core, apps,
// …), and nothing of the others is in its program.
//
// What holds for all: requests and answers are protobuf, except for patches. No request rate is imposed here (the
// server protects itself; --kube-api-qps is in the transport that the configuration brings). The user agent, the
// credentials and the timeouts are the configuration's. Errors are the API server's Status errors (apierrors.IsNotFound
// and so on). Only Follow, and what is built on it, tries again after an error.
package apiclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"bonsai/pkg/safetext"
)

// Client speaks to the API server with one identity. It is safe for concurrent use.
type Client struct {
	config *rest.Config
	http   *http.Client
	base   *url.URL
	scheme *runtime.Scheme
	codecs serializer.CodecFactory
	params runtime.ParameterCodec

	mu  sync.Mutex
	gvs map[schema.GroupVersion]rest.Interface
}

// New returns a client for the kinds of s; nothing is sent yet.
func New(config *rest.Config, s *runtime.Scheme) (*Client, error) {
	c := rest.CopyConfig(config)
	c.QPS, c.RateLimiter = -1, nil
	// Deprecation warnings are for people; the kinds we use are chosen knowingly.
	c.WarningHandler, c.WarningHandlerWithContext = rest.NoWarnings{}, nil
	c.ContentType = runtime.ContentTypeProtobuf
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	hc, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("building the HTTP client for %s: %w", safetext.URL(c.Host), err)
	}
	base, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return nil, fmt.Errorf("reading the server's address %q: %w", safetext.URL(c.Host), safetext.URLError(err))
	}
	return &Client{
		config: c, http: hc, base: base, scheme: s, codecs: serializer.NewCodecFactory(s),
		params: runtime.NewParameterCodec(s),
		gvs:    map[schema.GroupVersion]rest.Interface{},
	}, nil
}

// Config is the client's configuration, to build special clients from; do not change it.
func (c *Client) Config() *rest.Config { return c.config }

// HTTP is the transport that all requests of this client share.
func (c *Client) HTTP() *http.Client { return c.http }

// Scheme knows the kinds the client speaks of.
func (c *Client) Scheme() *runtime.Scheme { return c.scheme }

// group returns the REST client of one group version. It can only fail for a configuration that New refuses.
func (c *Client) group(gv schema.GroupVersion) (rest.Interface, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.gvs[gv]; r != nil {
		return r, nil
	}
	cfg := rest.CopyConfig(c.config)
	cfg.GroupVersion, cfg.APIPath = &gv, root(gv)
	cfg.NegotiatedSerializer = c.codecs.WithoutConversion()
	r, err := rest.RESTClientForConfigAndClient(cfg, c.http)
	if err != nil {
		return nil, fmt.Errorf("building the client for %s: %w", gv, err)
	}
	c.gvs[gv] = r
	return r, nil
}

// Document reads what is no object from a path, in the media type accept. Its errors say what the status code means, as
// those of upstream's discovery do: conditions show them.
func (c *Client) Document(ctx context.Context, path, accept string) ([]byte, error) {
	r, err := c.group(schema.GroupVersion{Version: "v1"}) // any will do
	if err != nil {
		return nil, err
	}
	return r.Get().AbsPath(path).SetHeader("Accept", accept).Do(ctx).Raw()
}

// ResourcePath names a resource, an object or a subresource by its path; all parts except Resource may be "".
type ResourcePath struct {
	schema.GroupVersion
	Namespace, Resource, Name, Below string
}

// ReadJSON reads what may be of no known kind (metrics) into out, as JSON.
func (c *Client) ReadJSON(ctx context.Context, at ResourcePath, query url.Values, out any) error {
	r, err := c.group(at.GroupVersion)
	if err != nil {
		return err
	}
	req := r.Get().NamespaceIfScoped(at.Namespace, at.Namespace != "").Resource(at.Resource).SetHeader("Accept",
		runtime.ContentTypeJSON)
	if at.Name != "" {
		req = req.Name(at.Name)
	}
	if at.Below != "" {
		req = req.SubResource(at.Below)
	}
	for name, values := range query {
		for _, v := range values {
			req = req.Param(name, v)
		}
	}
	body, err := answer(req.Do(ctx))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("reading the answer from %s: %w", req.URL().Path, err)
	}
	return nil
}

// answer returns an answer's bytes, and a refusal as the Status that the server sent. Raw alone would say no more than
// what the status code means.
func answer(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}

// root is the path below which group versions are served: the core group has one of its own.
func root(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api"
	}
	return "/apis"
}
