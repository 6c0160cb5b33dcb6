// Package watch lists and watches the kinds a proxy needs, in protobuf, and hands the objects to sinks. It keeps no objects: what
// a sink does not take is garbage at once.
package watch

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/proxy"
)

// served leaves out what no proxy of the default name serves.
const served = "!" + corev1.IsHeadlessService + ",!service.kubernetes.io/service-proxy-name"

// Client lists and watches with one identity over one connection.
type Client struct {
	config *rest.Config
	http   *http.Client
	codecs serializer.CodecFactory
	params runtime.ParameterCodec
	log    *slog.Logger
}

// NewClient returns a client that knows just the kinds the proxy reads.
func NewClient(config *rest.Config, log *slog.Logger) (*Client, error) {
	s := runtime.NewScheme()
	core := schema.GroupVersion{Version: "v1"}
	s.AddKnownTypes(core, &corev1.Service{}, &corev1.ServiceList{}, &corev1.Node{}, &corev1.NodeList{})
	s.AddKnownTypes(discoveryv1.SchemeGroupVersion, &discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{})
	metav1.AddToGroupVersion(s, core)
	metav1.AddToGroupVersion(s, discoveryv1.SchemeGroupVersion)
	hc, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("build the HTTP client for %s: %w", config.Host, err)
	}
	return &Client{config: config, http: hc, codecs: serializer.NewCodecFactory(s), params: runtime.NewParameterCodec(s), log: log}, nil
}

// Services feeds sink until ctx ends.
func (c *Client) Services(ctx context.Context, sink proxy.Sink[*corev1.Service]) error {
	return run(ctx, c, schema.GroupVersion{Version: "v1"}, "services", served, &corev1.ServiceList{}, &corev1.Service{}, sink)
}

// Slices feeds sink until ctx ends.
func (c *Client) Slices(ctx context.Context, sink proxy.Sink[*discoveryv1.EndpointSlice]) error {
	return run(ctx, c, discoveryv1.SchemeGroupVersion, "endpointslices", served, &discoveryv1.EndpointSliceList{}, &discoveryv1.EndpointSlice{}, sink)
}

// Nodes feeds sink until ctx ends.
func (c *Client) Nodes(ctx context.Context, sink proxy.Sink[*corev1.Node]) error {
	return run(ctx, c, schema.GroupVersion{Version: "v1"}, "nodes", "", &corev1.NodeList{}, &corev1.Node{}, sink)
}

// run lists and watches one kind; client-go's reflector retries whatever fails.
func run[T runtime.Object](ctx context.Context, c *Client, gv schema.GroupVersion, resource, selector string, list runtime.Object, item T, sink proxy.Sink[T]) error {
	cfg := rest.CopyConfig(c.config)
	cfg.GroupVersion, cfg.APIPath, cfg.NegotiatedSerializer = &gv, "/apis", c.codecs.WithoutConversion()
	if gv.Group == "" {
		cfg.APIPath = "/api"
	}
	client, err := rest.RESTClientForConfigAndClient(cfg, c.http)
	if err != nil {
		return fmt.Errorf("build the client for %s: %w", gv, err)
	}
	request := func(o metav1.ListOptions) *rest.Request {
		o.LabelSelector = selector
		return client.Get().Resource(resource).VersionedParams(&o, c.params)
	}
	source := plainList{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			out := list.DeepCopyObject()
			return out, request(o).Do(ctx).Into(out)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.Watch = true
			return request(o).Watch(ctx)
		},
	}}
	log := logr.FromSlogHandler(c.log.Handler())
	reflector := cache.NewReflectorWithOptions(source, item, store[T]{sink}, cache.ReflectorOptions{Logger: &log, Name: resource})
	reflector.RunWithContext(ctx)
	return ctx.Err()
}

// plainList tells the reflector not to ask for streaming lists, during which it would hold every object.
type plainList struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is client-go's optional question to a source.
func (plainList) IsWatchListSemanticsUnSupported() bool { return true }

// store is what the reflector writes to.
type store[T any] struct{ sink proxy.Sink[T] }

// Add passes a new object on.
func (s store[T]) Add(o any) error { return each(o, s.sink.Set) }

// Update passes a changed object on.
func (s store[T]) Update(o any) error { return each(o, s.sink.Set) }

// Delete passes an object that is gone on.
func (s store[T]) Delete(o any) error { return each(o, s.sink.Delete) }

// Resync has nothing to do: sinks are level-triggered.
func (s store[T]) Resync() error { return nil }

// Replace passes a complete list on.
func (s store[T]) Replace(all []any, _ string) error {
	out := make([]T, 0, len(all))
	for _, o := range all {
		if err := each(o, func(t T) { out = append(out, t) }); err != nil {
			return err
		}
	}
	s.sink.Replace(out)
	return nil
}

func each[T any](o any, f func(T)) error {
	t, ok := o.(T)
	if !ok {
		return fmt.Errorf("unexpected object %T", o)
	}
	f(t)
	return nil
}
