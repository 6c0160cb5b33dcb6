// Package resource finds the objects a command speaks of (files, URLs, standard input, TYPE NAME arguments, selectors)
// and reads and writes them, whatever their kind.
package resource

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// CategoryExpander knows what "all" and other categories stand for.
type CategoryExpander interface {
	Expand(category string) ([]schema.GroupResource, bool)
}

// Client reads and writes objects of any kind as unstructured ones.
type Client struct {
	// REST sends requests to any path of the server.
	REST rest.Interface
	// Mapper knows kinds and resources.
	Mapper meta.RESTMapper

	categories CategoryExpander
	stdin      io.Reader
	http       *http.Client
	// seen are the namespaces that were there when an object in them was not.
	seen sync.Map
}

// NewClient returns a client for cfg; stdin is what "-f -" reads.
func NewClient(cfg *rest.Config, mapper meta.RESTMapper, categories CategoryExpander, stdin io.Reader) (*Client,
	error) {
	cfg = dynamic.ConfigFor(cfg)
	cfg.GroupVersion = &schema.GroupVersion{}
	cfg.APIPath = "/"
	r, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, err
	}
	return &Client{REST: r, Mapper: mapper, categories: categories, stdin: stdin, http: http.DefaultClient}, nil
}

// Do sends a request to path with the given query and body, and returns the answer as sent.
func (c *Client) Do(ctx context.Context, verb string, path []string, query url.Values, body []byte,
	headers ...string) ([]byte, error) {
	r := c.REST.Verb(verb).AbsPath(path...)
	for k, vs := range query {
		for _, v := range vs {
			r.Param(k, v)
		}
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.SetHeader(headers[i], headers[i+1])
	}
	if body != nil {
		r.Body(body)
	}
	return raw(r.Do(ctx))
}

// raw is the answer's bytes; a refusal is the server's Status as an error.
func raw(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

func decode(data []byte) (*unstructured.Unstructured, error) {
	if len(data) == 0 {
		return &unstructured.Unstructured{}, nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		if o, _, e := unstructured.UnstructuredJSONScheme.Decode(data, nil, nil); e == nil {
			if list, ok := o.(*unstructured.UnstructuredList); ok {
				return &unstructured.Unstructured{Object: list.UnstructuredContent()}, nil
			}
		}
		return nil, fmt.Errorf("decode the server's answer: %w", err)
	}
	return u, nil
}

func (c *Client) object(ctx context.Context, verb string, path []string, query url.Values, body []byte,
	headers ...string) (*unstructured.Unstructured, error) {
	data, err := c.Do(ctx, verb, path, query, body, headers...)
	if err != nil {
		return nil, err
	}
	return decode(data)
}

// JSON is the content type of whole objects.
const JSON = "application/json"

// Get reads one object. In a namespace that does not exist, it is the namespace that is not found.
func (c *Client) Get(ctx context.Context, m *meta.RESTMapping, namespace, name string,
	subresource ...string) (*unstructured.Unstructured, error) {
	path, err := ObjectPath(m, namespace, name, subresource...)
	if err != nil {
		return nil, err
	}
	u, err := c.object(ctx, http.MethodGet, path, nil, nil, "Accept", JSON)
	if err != nil {
		return nil, c.missing(ctx, m, namespace, err)
	}
	return u, nil
}

// missing makes of err, that an object was not found, that its namespace was not found, if so.
func (c *Client) missing(ctx context.Context, m *meta.RESTMapping, namespace string, err error) error {
	if !apierrors.IsNotFound(err) || m.Scope.Name() != meta.RESTScopeNameNamespace || namespace == "" ||
		namespace == metav1.NamespaceDefault {
		return err
	}
	if _, seen := c.seen.Load(namespace); seen {
		return err // one question for all of a file's objects
	}
	if _, e := c.Do(ctx, http.MethodGet, []string{"/api/v1/namespaces", namespace}, nil, nil); apierrors.IsNotFound(e) {
		return e
	}
	c.seen.Store(namespace, true)
	return err
}

// List reads a collection; opts holds selectors and, in Limit, the size of the pages that it is read in (0: all at
// once).
func (c *Client) List(ctx context.Context, m *meta.RESTMapping, namespace string,
	opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	path, err := CollectionPath(m, namespace)
	if err != nil {
		return nil, err
	}
	var all []unstructured.Unstructured
	for {
		data, err := c.Do(ctx, http.MethodGet, path, Query(&opts), nil, "Accept", JSON)
		if err != nil {
			return nil, err
		}
		list := &unstructured.UnstructuredList{}
		if err := list.UnmarshalJSON(data); err != nil {
			return nil, fmt.Errorf("decode the list of %s: %w", m.Resource.Resource, err)
		}
		all = append(all, list.Items...)
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			list.Items = all
			return list, nil
		}
	}
}

// Create posts obj. namespace "" is for cluster-scoped kinds.
func (c *Client) Create(ctx context.Context, m *meta.RESTMapping, namespace string, obj runtime.Object,
	opts metav1.CreateOptions) (*unstructured.Unstructured, error) {
	path, err := CollectionPath(m, namespace)
	if err != nil {
		return nil, err
	}
	body, err := Encode(obj)
	if err != nil {
		return nil, err
	}
	return c.object(ctx, http.MethodPost, path, Query(&opts), body, "Accept", JSON, "Content-Type", JSON)
}

// Post sends obj to a subresource: eviction, token, binding.
func (c *Client) Post(ctx context.Context, m *meta.RESTMapping, namespace, name, subresource string, obj runtime.Object,
	opts metav1.CreateOptions) (*unstructured.Unstructured, error) {
	path, err := ObjectPath(m, namespace, name, subresource)
	if err != nil {
		return nil, err
	}
	body, err := Encode(obj)
	if err != nil {
		return nil, err
	}
	return c.object(ctx, http.MethodPost, path, Query(&opts), body, "Accept", JSON, "Content-Type", JSON)
}

// Update puts obj.
func (c *Client) Update(ctx context.Context, m *meta.RESTMapping, namespace, name string, obj runtime.Object,
	opts metav1.UpdateOptions, subresource ...string) (*unstructured.Unstructured, error) {
	path, err := ObjectPath(m, namespace, name, subresource...)
	if err != nil {
		return nil, err
	}
	body, err := Encode(obj)
	if err != nil {
		return nil, err
	}
	return c.object(ctx, http.MethodPut, path, Query(&opts), body, "Accept", JSON, "Content-Type", JSON)
}

// Patch applies a patch document of the given type.
func (c *Client) Patch(ctx context.Context, m *meta.RESTMapping, namespace, name string, pt types.PatchType,
	patch []byte, opts metav1.PatchOptions, subresource ...string) (*unstructured.Unstructured, error) {
	path, err := ObjectPath(m, namespace, name, subresource...)
	if err != nil {
		return nil, err
	}
	return c.object(ctx, http.MethodPatch, path, Query(&opts), patch, "Accept", JSON, "Content-Type", string(pt))
}

// Delete deletes one object and returns the answer: a Status, or the object that is being deleted.
func (c *Client) Delete(ctx context.Context, m *meta.RESTMapping, namespace, name string,
	opts metav1.DeleteOptions) (*unstructured.Unstructured, error) {
	path, err := ObjectPath(m, namespace, name)
	if err != nil {
		return nil, err
	}
	opts.Kind, opts.APIVersion = "DeleteOptions", "v1"
	body, err := Encode(&opts)
	if err != nil {
		return nil, err
	}
	return c.object(ctx, http.MethodDelete, path, nil, body, "Accept", JSON, "Content-Type", JSON)
}
