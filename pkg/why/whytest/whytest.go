// Package whytest gives explainers a cluster that is written down: objects as YAML, rights and the bounds of sight.
package whytest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"bonsai/pkg/why"
)

// Now is when the questions of tests are asked: 2026-01-02T12:00:00Z.
var Now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// Source is a why.Source of written objects.
type Source struct {
	Objects []*unstructured.Unstructured
	// Hidden are the resources that the caller may not read.
	Hidden []string
	// Versions are the only ones of resources that are not served in the version of a question.
	Versions map[string]string
	// Can answers questions about rights; nil allows all.
	Can func(why.Access) (bool, string)
	// Refuse answers applies; nil takes them all.
	Refuse func(*unstructured.Unstructured) error
}

var _ why.Source = (*Source)(nil)

// Parse reads the objects of YAML documents.
func Parse(t testing.TB, text string) *Source {
	t.Helper()
	s := &Source{}
	d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := d.Decode(u); errors.Is(err, io.EOF) {
			return s
		} else if err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			s.Objects = append(s.Objects, u)
		}
	}
}

// Ask returns what the explainers say of o in the cluster s.
func Ask(t testing.TB, s *Source, e why.Explainers, o why.Object) why.Answer {
	t.Helper()
	a, err := why.NewCase(why.NewWorld(s), Now, e).Explain(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (s *Source) matching(r schema.GroupVersionResource) (list []*unstructured.Unstructured, err error) {
	if v := s.Versions[r.Resource]; v != "" && v != r.Version {
		return nil, apierrors.NewNotFound(r.GroupResource(), "")
	}
	if slices.Contains(s.Hidden, r.Resource) {
		return nil, apierrors.NewForbidden(r.GroupResource(), "", errors.New("hidden by the test"))
	}
	for _, u := range s.Objects {
		guess, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
		if guess.GroupResource() == r.GroupResource() {
			list = append(list, u)
		}
	}
	return list, nil
}

// Get implements why.Source.
func (s *Source) Get(_ context.Context, r schema.GroupVersionResource, namespace, name string) (
	*unstructured.Unstructured, error) {
	list, err := s.matching(r)
	if err != nil {
		return nil, err
	}
	for _, u := range list {
		if u.GetNamespace() == namespace && u.GetName() == name {
			return u, nil
		}
	}
	return nil, apierrors.NewNotFound(r.GroupResource(), name)
}

// List implements why.Source.
func (s *Source) List(_ context.Context, r schema.GroupVersionResource, namespace string) (
	items []unstructured.Unstructured, more bool, err error) {
	list, err := s.matching(r)
	for _, u := range list {
		if namespace == "" || u.GetNamespace() == namespace {
			items = append(items, *u)
		}
	}
	return items, false, err
}

// Events implements why.Source.
func (s *Source) Events(_ context.Context, o why.Object) (items []unstructured.Unstructured, err error) {
	list, err := s.matching(schema.GroupVersionResource{Version: "v1", Resource: "events"})
	for _, u := range list {
		kind, _, _ := unstructured.NestedString(u.Object, "involvedObject", "kind")
		name, _, _ := unstructured.NestedString(u.Object, "involvedObject", "name")
		namespace, _, _ := unstructured.NestedString(u.Object, "involvedObject", "namespace")
		if kind == o.Kind && name == o.Name && namespace == o.Namespace {
			items = append(items, *u)
		}
	}
	return items, err
}

// Log implements why.Source. Logs are written as objects of the kind Log, with the name of their pod, "container",
// "previous" and "text".
func (s *Source) Log(_ context.Context, l why.Log) (string, error) {
	list, err := s.matching(schema.GroupVersionResource{Resource: "logs"})
	for _, u := range list {
		container, _, _ := unstructured.NestedString(u.Object, "container")
		previous, _, _ := unstructured.NestedBool(u.Object, "previous")
		if (why.Log{Namespace: u.GetNamespace(), Pod: u.GetName(), Container: container, Previous: previous}) == l {
			text, _, _ := unstructured.NestedString(u.Object, "text")
			return text, nil
		}
	}
	return "", cmp.Or(err, error(apierrors.NewNotFound(schema.GroupResource{Resource: "pods/log"}, l.Pod)))
}

// Mapping implements why.Source. The kinds of written objects are served, and those of Kubernetes' own groups.
func (s *Source) Mapping(group, kind string) (schema.GroupVersionResource, error) {
	for _, u := range s.Objects {
		if gvk := u.GroupVersionKind(); gvk.Group == group && gvk.Kind == kind {
			r, _ := meta.UnsafeGuessKindToResource(gvk)
			return r, nil
		}
	}
	if group == "" || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") {
		r, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
		return r, nil
	}
	return schema.GroupVersionResource{}, &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: group, Kind: kind}}
}

// Resource implements why.Source.
func (s *Source) Resource(group, resource string) (schema.GroupVersionResource, error) {
	for _, u := range s.Objects {
		if r, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind()); r.Group == group && r.Resource == resource {
			return r, nil
		}
	}
	return schema.GroupVersionResource{}, &meta.NoResourceMatchError{
		PartialResource: schema.GroupVersionResource{Group: group, Resource: resource}}
}

// Version implements why.Source.
func (s *Source) Version(r schema.GroupVersionResource) string {
	return cmp.Or(s.Versions[r.Resource], r.Version)
}

// Self implements why.Source.
func (s *Source) Self(context.Context) (string, []string, error) {
	return "tester", []string{"system:authenticated"}, nil
}

// Apply implements why.Source.
func (s *Source) Apply(_ context.Context, _ schema.GroupVersionResource, u *unstructured.Unstructured, _ string) error {
	if s.Refuse == nil {
		return nil
	}
	return s.Refuse(u)
}

// Allowed implements why.Source.
func (s *Source) Allowed(_ context.Context, a why.Access) (bool, string, error) {
	if s.Can == nil {
		return true, "", nil
	}
	ok, reason := s.Can(a)
	return ok, reason, nil
}
