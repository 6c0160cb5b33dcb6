package policies

import (
	"context"
	"errors"
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
)

// What is wrong with a binding, in upstream's words.
var (
	errNoParams         = errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	errNamespaceOfParam = errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	errNoNamespace      = errors.New(
		"cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
)

// parameters are where the parameters of a policy are; nil: it has none.
type parameters struct {
	store registry.Store
	route *catalog.Route
}

// param is one of a binding's parameters: a document, nil for none.
type param struct {
	name    string // "namespace/name"
	content map[string]any
}

// parameters finds out where the parameters of a policy are. The catalog is read for each request: a paramKind may be a
// custom resource that appears or goes at any time. Until it is there, the policy fails as its failurePolicy demands.
func (p *plugin) parameters(of *policy) (*parameters, error) {
	if of.params == nil {
		return nil, nil
	}
	for _, route := range p.Matcher.Catalog.Snapshot().Routes(of.params.GroupVersion()) {
		if route.GVK == *of.params && !route.Row.NotStored {
			return &parameters{store: p.Stores(route.Row.GroupResource()), route: route}, nil
		}
	}
	return nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", *of.params)
}

// find finds the parameters that a binding refers to. None at all is one that is null, unless there must be one; a
// binding that allows that there is none has none then. The policy is evaluated once for each. A namespaced parameter
// without a namespace in the binding comes from the namespace of the request, so that each namespace can have its own.
//
// A selector may match as many objects as their writers make. So each is read when it is its turn, and none after the
// end of the request: their number costs time up to the request's timeout, and no memory. An error comes last.
func (s *parameters) find(ctx context.Context, r *match.Request, b *binding) iter.Seq2[param, error] {
	return func(yield func(param, error) bool) {
		if s == nil || b.param == nil {
			yield(param{}, nil)
			return
		}
		namespace, err := s.namespace(r, b.param)
		if err != nil {
			yield(param{}, err)
			return
		}
		none := true
		for obj, err := range s.read(ctx, namespace, b.param) {
			none = false
			var one param
			if err == nil {
				one, err = s.param(ctx, obj)
			}
			if !yield(one, err) || err != nil {
				return
			}
		}
		if none && b.param.denies() {
			yield(param{}, errNoParams)
		}
	}
}

// namespace returns where the parameters of a reference are, "" for those without a namespace.
func (s *parameters) namespace(r *match.Request, ref *paramRef) (string, error) {
	switch {
	case !s.route.Row.Namespaced && ref.Namespace != "":
		return "", errNamespaceOfParam
	case !s.route.Row.Namespaced || ref.Namespace != "":
		return ref.Namespace, nil
	}
	namespace := match.NamespaceOf(r.A)
	if namespace == "" {
		return "", errNoNamespace
	}
	return namespace, nil
}

// read finds the stored parameters of a reference, none if there are none.
func (s *parameters) read(ctx context.Context, namespace string, ref *paramRef) iter.Seq2[runtime.Object, error] {
	if ref.selector != nil {
		return s.store.Each(ctx, namespace, ref.selector.String())
	}
	return func(yield func(runtime.Object, error) bool) {
		obj, err := s.store.GetCached(ctx, namespace, ref.Name)
		if apierrors.IsNotFound(err) { // it may be new
			obj, err = s.store.Get(ctx, namespace, ref.Name)
		}
		if !apierrors.IsNotFound(err) {
			yield(obj, err)
		}
	}
}

// param makes a document of a stored object, in the version that the policy wants.
func (s *parameters) param(ctx context.Context, obj runtime.Object) (param, error) {
	kind := s.route.Row.StoredGVK()
	if from := s.route.Version.FromHub; from != nil {
		var err error
		if obj, err = from(ctx, obj); err != nil {
			return param{}, err
		}
		kind = s.route.GVK
	}
	content, err := document(obj, kind)
	if err != nil {
		return param{}, err
	}
	m, _ := content["metadata"].(map[string]any)
	namespace, _ := m["namespace"].(string)
	name, _ := m["name"].(string)
	return param{namespace + "/" + name, content}, nil
}

// document converts an object for expressions. Expressions read apiVersion and kind, which stored objects do not carry.
func document(obj runtime.Object, kind schema.GroupVersionKind) (map[string]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}
