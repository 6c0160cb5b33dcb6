package webhooks

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/admission"
)

// request is what webhooks are told of one request. It belongs to one round of one plug-in.
type request struct {
	*plugin
	a *admission.Attributes
	// seen are the objects in the versions that webhooks want.
	seen []*view
	// options are a.Options as JSON, once a webhook is called.
	options []byte
}

// view is the request's objects in one version.
type view struct {
	kind     schema.GroupVersionKind
	resource schema.GroupVersionResource
	object   side
	old      side
}

// side is one of the objects in one version: converted, encoded and made a document when somebody asks for that.
type side struct {
	converted runtime.Object
	encoded   []byte
	document  map[string]any
}

// as returns the objects in the version that c wants.
func (r *request) as(ctx context.Context, c *candidate) (*view, error) {
	for _, v := range r.seen {
		if v.kind == c.kind && v.resource == c.resource {
			return v, nil
		}
	}
	v := &view{kind: c.kind, resource: c.resource}
	var err error
	if v.object.converted, err = r.convert(ctx, r.a.Object, c); err != nil {
		return nil, err
	}
	if v.old.converted, err = r.convert(ctx, r.a.OldObject, c); err != nil {
		return nil, err
	}
	r.seen = append(r.seen, v)
	return v, nil
}

// changed says that a.Object is another one now, which c's version of it became; nil: nobody knows how it looks elsewhere.
func (r *request) changed(v *view, converted runtime.Object) {
	old := v.old
	r.seen = r.seen[:0]
	if converted != nil {
		r.seen = append(r.seen, &view{kind: v.kind, resource: v.resource, object: side{converted: converted}, old: old})
	}
}

// convert returns obj in c's version; what is not converted is shared.
func (r *request) convert(ctx context.Context, obj runtime.Object, c *candidate) (runtime.Object, error) {
	if obj == nil || c.kind == r.a.Kind {
		return obj, nil
	}
	rt := r.Catalog.Snapshot().Route(c.resource)
	if rt == nil || rt.Version.FromHub == nil {
		return obj, nil
	}
	out, err := rt.Version.FromHub(ctx, obj.DeepCopyObject())
	if err != nil {
		return nil, fmt.Errorf("converting %s to %s: %w", r.a.Kind, c.kind, err)
	}
	return out, nil
}

// json encodes the object; nil for none.
func (s *side) json() ([]byte, error) {
	if s.encoded == nil && s.converted != nil {
		var err error
		if s.encoded, err = json.Marshal(s.converted); err != nil {
			return nil, err
		}
	}
	return s.encoded, nil
}

// content is the object as match conditions see it; nil for none.
func (s *side) content() (map[string]any, error) {
	if s.document != nil || s.converted == nil {
		return s.document, nil
	}
	if u, ok := s.converted.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	var err error
	s.document, err = runtime.DefaultUnstructuredConverter.ToUnstructured(s.converted)
	return s.document, err
}

// describe is the AdmissionRequest without uid and objects.
func (r *request) describe(c *candidate) (*admissionv1.AdmissionRequest, error) {
	a := r.a
	if r.options == nil && a.Options != nil {
		var err error
		if r.options, err = json.Marshal(a.Options); err != nil {
			return nil, err
		}
	}
	asked, kind := a.RequestResource, a.RequestKind
	if asked.Empty() {
		asked, kind = a.Resource, a.Kind
	}
	out := &admissionv1.AdmissionRequest{
		Kind: groupVersionKind(c.kind), Resource: groupVersionResource(c.resource), SubResource: a.Subresource,
		RequestSubResource: a.Subresource, Name: a.Name, Namespace: namespaceOf(a), Operation: admissionv1.Operation(a.Operation),
		DryRun: &a.DryRun, Options: runtime.RawExtension{Raw: r.options},
	}
	if a.Collection {
		out.Name = ""
	}
	requestKind, requestResource := groupVersionKind(kind), groupVersionResource(asked)
	out.RequestKind, out.RequestResource = &requestKind, &requestResource
	if u := a.User; u != nil {
		out.UserInfo = authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
		for k, v := range u.Extra {
			if out.UserInfo.Extra == nil {
				out.UserInfo.Extra = map[string]authenticationv1.ExtraValue{}
			}
			out.UserInfo.Extra[k] = v
		}
	}
	return out, nil
}

// namespaceOf: a request about a Namespace has its name as namespace, as upstream.
func namespaceOf(a *admission.Attributes) string {
	if aboutNamespace(a) {
		return a.Name
	}
	return a.Namespace
}

func groupVersionKind(k schema.GroupVersionKind) metav1.GroupVersionKind {
	return metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

func groupVersionResource(r schema.GroupVersionResource) metav1.GroupVersionResource {
	return metav1.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}
