package policies

import (
	"context"
	"errors"
	"fmt"

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

// find returns the parameters that a binding refers to. None at all is one that is null, unless there must be one; a
// binding that allows that there is none has none then. The policy is evaluated once for each element of the result. A
// namespaced parameter without a namespace in the binding comes from the namespace of the request, so that each
// namespace can have its own.
func (s *parameters) find(ctx context.Context, r *match.Request, b *binding) ([]param, error) {
	if s == nil || b.param == nil {
		return []param{{}}, nil
	}
	namespace := ""
	switch {
	case !s.route.Row.Namespaced && b.param.Namespace != "":
		return nil, errNamespaceOfParam
	case s.route.Row.Namespaced:
		if namespace = b.param.Namespace; namespace == "" {
			namespace = match.NamespaceOf(r.A)
		}
		if namespace == "" {
			return nil, errNoNamespace
		}
	}
	found, err := s.read(ctx, namespace, b.param)
	if err != nil {
		return nil, err
	}
	out := make([]param, len(found))
	for i, obj := range found {
		if out[i], err = s.param(ctx, obj); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 && b.param.denies() {
		return nil, errNoParams
	}
	return out, nil
}

// read returns the stored parameters of a reference, none if there are none. A selector may match many objects. Their
// number has no bound here.
func (s *parameters) read(ctx context.Context, namespace string, ref *paramRef) ([]runtime.Object, error) {
	if ref.selector != nil {
		return s.store.List(ctx, namespace, ref.selector.String())
	}
	obj, err := s.store.GetCached(ctx, namespace, ref.Name)
	if apierrors.IsNotFound(err) { // it may be new
		obj, err = s.store.Get(ctx, namespace, ref.Name)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []runtime.Object{obj}, nil
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
