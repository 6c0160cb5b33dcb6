package resource

import (
	"context"
	"encoding/json"
	"net/url"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Info is one object a command speaks of: read from the server, from a file, or (a list or table) a whole collection.
type Info struct {
	Mapping *meta.RESTMapping
	// Namespace is "" for cluster-scoped kinds and for collections of all namespaces.
	Namespace string
	// Name is "" for collections.
	Name string
	// Source is the file or URL the object was read from, "" if it was named on the command line.
	Source string
	// Object is the object as read. For requests that do not fetch (Request.NamesOnly) it is nil.
	Object *unstructured.Unstructured
	// Raw is the answer as sent, instead of Object, for requests with Collections.
	Raw []byte

	client *Client
}

// Namespaced reports whether the kind lives in namespaces.
func (i *Info) Namespaced() bool { return i.Mapping.Scope.Name() == meta.RESTScopeNameNamespace }

// Client is the client the info came from.
func (i *Info) Client() *Client { return i.client }

// ResourceName is the object as results name it: "pod/x", "deployment.apps/x".
func (i *Info) ResourceName() string {
	return KindName(i.Mapping.GroupVersionKind.Kind, i.Mapping.GroupVersionKind.Group) + "/" + i.Name
}

// Decode makes Object of Raw.
func (i *Info) Decode() error {
	if i.Object != nil {
		return nil
	}
	u, err := decode(i.Raw)
	i.Object = u
	return err
}

// Get reads the object afresh.
func (i *Info) Get(ctx context.Context) error {
	return i.take(i.client.Get(ctx, i.Mapping, i.Namespace, i.Name))
}

// Create creates the object on the server and keeps the answer. A version that the object was read with is not sent.
func (i *Info) Create(ctx context.Context, opts metav1.CreateOptions) error {
	if i.Object.GetResourceVersion() != "" {
		i.Object = i.Object.DeepCopy()
		i.Object.SetResourceVersion("")
	}
	return i.take(i.client.Create(ctx, i.Mapping, i.Namespace, i.Object, opts))
}

// Update puts the object and keeps the answer.
func (i *Info) Update(ctx context.Context, opts metav1.UpdateOptions, subresource ...string) error {
	return i.take(i.client.Update(ctx, i.Mapping, i.Namespace, i.Name, i.Object, opts, subresource...))
}

// Patch patches the object and keeps the answer.
func (i *Info) Patch(ctx context.Context, pt types.PatchType, patch []byte, opts metav1.PatchOptions,
	subresource ...string) error {
	return i.take(i.client.Patch(ctx, i.Mapping, i.Namespace, i.Name, pt, patch, opts, subresource...))
}

// Delete deletes the object and returns the server's answer.
func (i *Info) Delete(ctx context.Context, opts metav1.DeleteOptions) (*unstructured.Unstructured, error) {
	return i.client.Delete(ctx, i.Mapping, i.Namespace, i.Name, opts)
}

func (i *Info) take(u *unstructured.Unstructured, err error) error {
	if err != nil {
		return err
	}
	i.Object = u
	if n := u.GetName(); n != "" && u.GetKind() != "Status" {
		i.Name = n
	}
	return nil
}

// KindName is a kind as results name it: "pod", "deployment.apps".
func KindName(kind, group string) string {
	name := lower(kind)
	if group != "" {
		name += "." + group
	}
	return name
}

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// Watch opens a watch of the collection (of one object with a field selector in query) and calls each for every event,
// until ctx ends, the server closes the watch (nil) or each returns an error. accept is the Accept header.
func (c *Client) Watch(ctx context.Context, m *meta.RESTMapping, namespace string, query url.Values, accept string,
	each func(Event) error) error {
	path, err := CollectionPath(m, namespace)
	if err != nil {
		return err
	}
	query.Set("watch", "true")
	r := c.REST.Get().AbsPath(path...).SetHeader("Accept", accept)
	for k, vs := range query {
		for _, v := range vs {
			r.Param(k, v)
		}
	}
	body, err := r.Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	for d := json.NewDecoder(body); ; {
		var e Event
		if err := d.Decode(&e); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return nil // the server ends a watch after a while; what it sent is complete
		}
		if err := each(e); err != nil {
			return err
		}
	}
}

// Event is one event of a watch.
type Event struct {
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
	Type string
	// Object is the object, the table with the object's row, or the Status of an error, as JSON.
	Object json.RawMessage
}
