package resource

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// TestNamelessRequests tries every verb that speaks of one object with what is no name: none may send anything, as the
// path would be the collection's, or a namespace's.
func TestNamelessRequests(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the client sent %s %s", r.Method, r.URL)
	}))
	defer s.Close()
	c, err := NewClient(&rest.Config{Host: s.URL}, nil, nil, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	namespaced := &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Scope: meta.RESTScopeNamespace}
	cluster := &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"},
		Scope: meta.RESTScopeRoot}
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	ctx := t.Context()
	for _, at := range []struct {
		mapping               *meta.RESTMapping
		namespace, name, want string
	}{
		{namespaced, "default", "", "resource name may not be empty"},
		{cluster, "", "", "resource name may not be empty"},
		{namespaced, "default", ".", `invalid resource name ".": [may not be '.']`},
		{namespaced, "default", "..", `invalid resource name "..": [may not be '..']`},
		{cluster, "", "../namespaces/default", `invalid resource name "../namespaces/default": [may not contain '/']`},
		{cluster, "", "a%2fb", `invalid resource name "a%2fb": [may not contain '%']`},
		{namespaced, "", "one", "an empty namespace may not be set when a resource name is provided"},
		{namespaced, "..", "one", `invalid namespace "..": [may not be '..']`},
		{namespaced, "a/b", "one", `invalid namespace "a/b": [may not contain '/']`},
	} {
		m, ns, name := at.mapping, at.namespace, at.name
		for verb, do := range map[string]func() error{
			"get":    func() error { _, err := c.Get(ctx, m, ns, name); return err },
			"status": func() error { _, err := c.Get(ctx, m, ns, name, "status"); return err },
			"update": func() error { _, err := c.Update(ctx, m, ns, name, obj, metav1.UpdateOptions{}); return err },
			"patch": func() error {
				_, err := c.Patch(ctx, m, ns, name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
				return err
			},
			"delete": func() error { _, err := c.Delete(ctx, m, ns, name, metav1.DeleteOptions{}); return err },
			"eviction": func() error {
				_, err := c.Post(ctx, m, ns, name, "eviction", obj, metav1.CreateOptions{})
				return err
			},
			"read": func() error { return c.read(ctx, Request{}, &Info{Mapping: m, Namespace: ns, Name: name}) },
		} {
			if err := do(); err == nil || err.Error() != at.want {
				t.Errorf("%s of %q in %q: got %v, want %s", verb, name, ns, err, at.want)
			}
		}
	}
	if _, err := c.Get(ctx, cluster, "", "one", "../.."); err == nil ||
		err.Error() != `invalid subresource "../..": [may not contain '/']` {
		t.Errorf("subresource: got %v", err)
	}
	if _, err := c.List(ctx, namespaced, "..", metav1.ListOptions{}); err == nil {
		t.Error("a list in the namespace .. was sent")
	}
}
