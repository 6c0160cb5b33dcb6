package customresource

import (
	"slices"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestFinalizerWarnings: a real kube-apiserver v1.36.3 warns of the same, at a create and of what an update adds.
func TestFinalizerWarnings(t *testing.T) {
	t.Parallel()
	d, err := newDefinition(widgets(), func() (*v1.CustomResourceDefinition, error) { return widgets(), nil })
	if err != nil {
		t.Fatal(err)
	}
	strategy := newServed(d, converter{ctx: t.Context()}, func(*v1.CustomResourceDefinitionVersion) bool {
		return true
	}).row.Strategy
	widget := func(finalizers ...string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{
			Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "size": "small"}}
		u.SetName("a")
		u.SetFinalizers(finalizers)
		return u
	}
	plain := func(name string) string {
		return `metadata.finalizers: "` + name +
			`": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers`
	}
	pathless := func(name string) string {
		return `metadata.finalizers: "` + name +
			`": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers`
	}
	many := widget("foo", "foo.bar", "foo/bar", "Foo_x", "orphan", "foregroundDeletion", "kubernetes", "foo.bar/baz",
		"foo")
	if got, want := strategy.Warnings(many, nil),
		[]string{plain("Foo_x"), plain("foo"), pathless("foo.bar")}; !slices.Equal(got, want) {
		t.Errorf("create: %q, want %q", got, want)
	}
	if got, want := strategy.Warnings(widget("foo", "new", "example.com/a"), many),
		[]string{plain("new")}; !slices.Equal(got, want) {
		t.Errorf("update: %q, want %q", got, want)
	}
}
