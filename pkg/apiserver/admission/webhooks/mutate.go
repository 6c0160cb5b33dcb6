package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	sigsjson "sigs.k8s.io/json"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/patch"
)

// mutator is the plug-in MutatingAdmissionWebhook.
type mutator struct{ *plugin }

// round is what the plug-in keeps of the first round of a request for the second one.
type round struct {
	called map[string]bool // webhooks that want to be called again when the object changes after them
	again  map[string]bool // of these, for whom it has
	left   runtime.Object  // the object as the webhooks left it
}

// outdate says that the object is another one now than those that were called have seen.
func (r *round) outdate() {
	for uid := range r.called {
		r.again[uid] = true
	}
	clear(r.called)
}

// Admit implements admission.Mutator. Webhooks are called one after the other, each with what those before it made of the object. In
// the second round only those are called that want it and whose object has changed since.
func (p mutator) Admit(ctx context.Context, a *admission.Attributes) error {
	all, err := p.hooksFor(ctx, a)
	if err != nil || len(all) == 0 {
		return err
	}
	past, _ := a.Kept(mutatingName).(*round)
	if past == nil {
		past = &round{called: map[string]bool{}, again: map[string]bool{}}
	} else if a.Repeated() && past.left != nil && !apiequality.Semantic.DeepEqual(past.left, a.Object) {
		past.outdate()
	}
	r := &request{plugin: p.plugin, a: a}
	for i := range all {
		c := &all[i]
		if a.Repeated() && !past.again[c.uid] {
			continue
		}
		if called, err := r.concerns(ctx, c); err != nil {
			return asStatus(err)
		} else if !called {
			continue
		}
		changed, err := p.mutate(ctx, r, c)
		if err != nil {
			return err
		}
		if changed {
			past.outdate()
			a.Repeat()
		}
		if c.ReinvocationPolicy != nil && *c.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy {
			past.called[c.uid] = true
		}
		a.Keep(mutatingName, past)
	}
	if len(past.called)+len(past.again) > 0 && a.Object != nil && !a.Repeated() {
		past.left = a.Object.DeepCopyObject() // the other plug-ins change it in place
	}
	return nil
}

// mutate calls one webhook and carries out its patch.
func (p mutator) mutate(ctx context.Context, r *request, c *candidate) (changed bool, err error) {
	v, err := r.as(ctx, c)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	begun := time.Now()
	said, err := r.ask(ctx, c, v)
	if err == nil {
		for _, w := range warnings(said.Warnings) {
			if r.a.Warn != nil {
				r.a.Warn(w)
			}
		}
		if !said.Allowed {
			err = denied(c.Name, said.Result)
		} else if len(said.Patch) > 0 {
			changed, err = r.patch(ctx, c, v, said)
		}
	}
	return changed, r.decide(ctx, c, begun, err)
}

// patch applies a webhook's JSON patch to the object as it has seen it.
func (r *request) patch(ctx context.Context, c *candidate, v *view, said *admissionv1.AdmissionResponse) (bool, error) {
	apply, err := patch.Read(types.JSONPatchType, said.Patch, nil)
	if err != nil {
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		return false, &callError{c.Name, fmt.Errorf("received undecodable patch in webhook response: %w", err)}
	}
	if apply.Empty {
		return false, nil
	}
	if v.object.converted == nil {
		return false, apierrors.NewInternalError(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", c.Name))
	}
	if t := *said.PatchType; t != admissionv1.PatchTypeJSONPatch {
		return false, &callError{c.Name, fmt.Errorf("unsupported patch type %q", t)}
	}
	was, err := v.object.json()
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	is, err := apply.To(ctx, was)
	if err != nil {
		return false, apierrors.NewInternalError(patch.Cause(err))
	}
	obj, err := r.decode(is, c, v)
	if err != nil {
		return false, err
	}
	if apiequality.Semantic.DeepEqual(obj, v.object.converted) {
		return false, nil
	}
	return true, r.replace(ctx, c, v, obj)
}

// decode makes an object of the patched document, which must still be of the kind that was patched.
func (r *request) decode(doc []byte, c *candidate, v *view) (runtime.Object, error) {
	obj := r.empty(c, v)
	if u, ok := obj.(runtime.Unstructured); ok {
		if err := u.(interface{ UnmarshalJSON([]byte) error }).UnmarshalJSON(doc); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
	} else if err := sigsjson.UnmarshalCaseSensitivePreserveInts(doc, obj); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	got := obj.GetObjectKind().GroupVersionKind()
	if got.Group == "" && got.Version == "" { // what is not said is as it was
		got.Group, got.Version = c.kind.Group, c.kind.Version
	}
	switch {
	case got.Kind == "", got == c.kind:
	case got.Kind == c.kind.Kind:
		return nil, apierrors.NewInternalError(runtime.NewNotRegisteredErrForKind("pkg/runtime/scheme.go:111", got)) // upstream's scheme
	default:
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: fmt.Sprintf("converting (%s.%s) to (%s.%s): unknown conversion", got.Version, got.Kind, internalPackage(c.kind), c.kind.Kind)}}
	}
	obj.GetObjectKind().SetGroupVersionKind(c.kind)
	return obj, nil
}

// internalPackage is what upstream calls the package of a group's internal types.
func internalPackage(k schema.GroupVersionKind) string {
	if k.Group == "" {
		return "core"
	}
	for i := range k.Group {
		if k.Group[i] == '.' {
			return k.Group[:i]
		}
	}
	return k.Group
}

// newLike makes an empty object of obj's type.
func newLike(obj runtime.Object) runtime.Object {
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
}

// empty makes an object of the version that c wants.
func (r *request) empty(c *candidate, v *view) runtime.Object {
	if rt := r.Catalog.Snapshot().Route(c.resource); rt != nil && rt.GVK == c.kind && rt.Version.FromHub != nil {
		return rt.Version.New()
	}
	return newLike(v.object.converted)
}

// replace makes obj, of c's version, the request's object, with what it leaves out filled in.
func (r *request) replace(ctx context.Context, c *candidate, v *view, obj runtime.Object) error {
	rt := r.Catalog.Snapshot().Route(c.resource)
	if rt != nil && rt.GVK == c.kind {
		if rt.Version.Prune != nil {
			rt.Version.Prune(obj)
		}
		if rt.Version.Default != nil {
			rt.Version.Default(obj)
		}
	}
	if c.kind == r.a.Kind {
		if r.a.Default != nil {
			r.a.Default(obj)
		}
		r.a.Object = obj
		r.changed(v, obj)
		return nil
	}
	if rt != nil && rt.Version.ToHub != nil {
		var err error
		if obj, err = rt.Version.ToHub(ctx, obj); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	if r.a.Default != nil {
		r.a.Default(obj)
	}
	r.a.Object = obj
	r.changed(v, nil)
	return nil
}
