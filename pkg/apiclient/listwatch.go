package apiclient

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Selection narrows what is listed and watched to a namespace, a field selector and a label selector, all of them the
// server's. The zero Selection is everything.
type Selection struct {
	Namespace, Fields, Labels string
	// Newest asks for the newest state in the first list, not for what the server has at hand, which is a reflector's
	// habit: for those whom a server that lags behind may not take back to what was before they started, or before what
	// they know from another resource.
	Newest bool
}

// ListWatch lists and watches the selected objects of a resource, in the types of the client's scheme.
func (c *Client) ListWatch(gvr schema.GroupVersionResource, s Selection) cache.ListerWatcher {
	apply := func(o *metav1.ListOptions) { o.FieldSelector, o.LabelSelector = s.Fields, s.Labels }
	return PlainListWatch{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			apply(&o)
			if s.Newest && o.ResourceVersion == "0" {
				o.ResourceVersion, o.Limit = "", 0 // in one piece, as what is at hand would be
			}
			return c.list(ctx, gvr, s.Namespace, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			apply(&o)
			return c.watch(ctx, gvr, s.Namespace, o)
		},
	}}
}

// PlainListWatch tells a reflector not to ask for streaming lists (WatchList). They are an optimization of the server's
// memory that not every server offers, and ours needs none; the client holds every object twice until the last has
// come.
type PlainListWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is client-go's optional question to a ListerWatcher.
func (PlainListWatch) IsWatchListSemanticsUnSupported() bool { return true }

func (c *Client) list(ctx context.Context, gvr schema.GroupVersionResource, ns string,
	o metav1.ListOptions) (runtime.Object, error) {
	req, err := c.selected(gvr, ns, o)
	if err != nil {
		return nil, err
	}
	return req.Do(ctx).Get()
}

func (c *Client) watch(ctx context.Context, gvr schema.GroupVersionResource, ns string,
	o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	req, err := c.selected(gvr, ns, o)
	if err != nil {
		return nil, err
	}
	return req.Watch(ctx)
}

func (c *Client) selected(gvr schema.GroupVersionResource, ns string, o metav1.ListOptions) (*rest.Request, error) {
	group, err := c.group(gvr.GroupVersion())
	if err != nil {
		return nil, err
	}
	return group.Get().NamespaceIfScoped(ns, ns != "").Resource(gvr.Resource).VersionedParams(&o, c.params), nil
}
