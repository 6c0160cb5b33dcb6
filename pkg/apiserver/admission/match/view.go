package match

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/cel-go/common/types/ref"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/admission"
)

// Request is what webhooks and policies see of one request. It belongs to one round of one plug-in.
type Request struct {
	*Matcher
	A *admission.Attributes
	// seen are the objects in the versions that are wanted.
	seen []*View
	// options are A.Options as JSON, once somebody wants them.
	options []byte
	// all and own are "authorizer" and "authorizer.requestResource".
	all, own        ref.Val
	namespaceObject map[string]any
	// warned has what Warn has logged, by message and asker.
	warned map[[2]string]bool
}

// Warn logs what went wrong with a policy or a webhook, the first time in this round alone: each of a policy's
// parameters may go wrong in the same way, and their number has no bound.
func (r *Request) Warn(message, kind, name string, err error) {
	key := [2]string{message, name}
	if r.warned[key] {
		return
	}
	if r.warned == nil {
		r.warned = map[[2]string]bool{}
	}
	r.warned[key] = true
	r.Log.Warn(message, kind, name, "err", err)
}

// View is the request's objects in one version.
type View struct {
	Target
	Object    Side
	Old       Side
	described map[string]any // "request"
}

// Side is one of the objects in one version: converted, encoded and made a document when somebody asks for that.
type Side struct {
	Converted runtime.Object
	encoded   []byte
	document  map[string]any
}

// As returns the objects in a version.
func (r *Request) As(ctx context.Context, in Target) (*View, error) {
	for _, v := range r.seen {
		if v.Target == in {
			return v, nil
		}
	}
	v := &View{Target: in}
	var err error
	if v.Object.Converted, err = r.convert(ctx, r.A.Object, in); err != nil {
		return nil, err
	}
	if v.Old.Converted, err = r.convert(ctx, r.A.OldObject, in); err != nil {
		return nil, err
	}
	r.seen = append(r.seen, v)
	return v, nil
}

// changed says that A.Object is another one now, which v's version of it became; nil: nobody knows how it looks
// elsewhere.
func (r *Request) changed(v *View, converted runtime.Object) {
	old := v.Old
	r.seen = r.seen[:0]
	if converted != nil {
		r.seen = append(r.seen, &View{Target: v.Target, Object: Side{Converted: converted}, Old: old})
	}
}

// convert returns obj in a version; what is not converted is shared.
func (r *Request) convert(ctx context.Context, obj runtime.Object, in Target) (runtime.Object, error) {
	if obj == nil || in.Kind == r.A.Kind {
		return obj, nil
	}
	rt := r.Catalog.Snapshot().Route(in.Resource)
	if rt == nil || rt.Version.FromHub == nil {
		return obj, nil
	}
	out, err := rt.Version.FromHub(ctx, obj.DeepCopyObject())
	if err != nil {
		return nil, fmt.Errorf("converting %s to %s: %w", r.A.Kind, in.Kind, err)
	}
	return out, nil
}

// JSON encodes the object; nil for none.
func (s *Side) JSON() ([]byte, error) {
	if s.encoded == nil && s.Converted != nil {
		var err error
		if s.encoded, err = json.Marshal(s.Converted); err != nil {
			return nil, err
		}
	}
	return s.encoded, nil
}

// Content is the object as expressions see it; nil for none.
func (s *Side) Content() (map[string]any, error) {
	if s.document != nil || s.Converted == nil {
		return s.document, nil
	}
	if u, ok := s.Converted.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	var err error
	s.document, err = runtime.DefaultUnstructuredConverter.ToUnstructured(s.Converted)
	return s.document, err
}

// Describe is the AdmissionRequest without uid and objects.
func (r *Request) Describe(in Target) (*admissionv1.AdmissionRequest, error) {
	a := r.A
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
		Kind: groupVersionKind(in.Kind), Resource: groupVersionResource(in.Resource), SubResource: a.Subresource,
		RequestSubResource: a.Subresource, Name: a.Name, Namespace: NamespaceOf(a),
		Operation: admissionv1.Operation(a.Operation),
		DryRun:    &a.DryRun, Options: runtime.RawExtension{Raw: r.options},
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

func groupVersionKind(k schema.GroupVersionKind) metav1.GroupVersionKind {
	return metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

func groupVersionResource(r schema.GroupVersionResource) metav1.GroupVersionResource {
	return metav1.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}
