package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/patch"
	vocabulary "bonsai/pkg/apiserver/request"
	"bonsai/pkg/strictjson"
)

// mutator is the plug-in MutatingAdmissionWebhook.
type mutator struct{ *plugin }

// Admit implements admission.Mutator. Webhooks are called one after the other, each with what those before it made of
// the object. In the second round only those are called that want it and whose object has changed since. The order is
// that of hooksFor, so the outcome is the same on every server. The first refusal or fatal failure ends the request;
// patches that were applied before it go with it.
func (p mutator) Admit(ctx context.Context, a *admission.Attributes) error {
	all, err := p.hooksFor(ctx, a)
	if err != nil || len(all) == 0 {
		return err
	}
	// The rounds belong to this one request. Other plug-ins may have changed the object since the first round;
	// comparing it with Left finds that out.
	past, _ := a.ReinvocationValue(mutatingName).(*match.Rounds)
	if past == nil {
		past = &match.Rounds{}
	} else if a.Reinvoked() && past.Left != nil && !apiequality.Semantic.DeepEqual(past.Left, a.Object) {
		past.Outdate()
	}
	defer vocabulary.Wait(ctx, time.Now())
	r := &request{p.plugin, p.Matcher.Request(a)}
	for i := range all {
		c := &all[i]
		if a.Reinvoked() && !past.Again(c.uid) {
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
			past.Outdate()
			a.Reinvoke()
		}
		if c.ReinvocationPolicy != nil && *c.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy {
			past.Call(c.uid)
		}
		a.SetReinvocationValue(mutatingName, past)
	}
	if past.Wanted() && a.Object != nil && !a.Reinvoked() {
		past.Left = a.Object.DeepCopyObject() // the other plug-ins change it in place
	}
	return nil
}

// mutate calls one webhook and carries out its patch. decide comes last and has the final word: under the failure
// policy Ignore it turns a failed call into no error. The object is unchanged then, since patch replaces it as its last
// step. A refusal is not a failure, and no policy ignores it.
func (p mutator) mutate(ctx context.Context, r *request, c *candidate) (changed bool, err error) {
	v, err := r.As(ctx, c.Target)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	begun := time.Now()
	said, err := r.ask(ctx, c, v)
	if err == nil {
		noteSaid(ctx, c.Name, said)
		for _, w := range warnings(said.Warnings) {
			if r.A.Warn != nil {
				r.A.Warn(w)
			}
		}
		if !said.Allowed {
			err = denied(c.Name, said.Result)
		} else if len(said.Patch) > 0 {
			changed, err = r.patch(ctx, c, v, said)
		}
	}
	noteMutation(ctx, c, r.A.Reinvoked(), changed, said)
	return changed, r.decide(ctx, c, begun, err, auditFailedOpen+turn(r.A.Reinvoked(), c.index))
}

// patch applies a webhook's JSON patch to the object as it has seen it. It applies the patch to JSON in the version
// that the webhook asked for, and decodes the result. That version may differ from the request's. A patch that cannot
// be decoded is a failure of the webhook, which the failure policy may ignore. One that cannot be applied is an
// internal error and always ends the request, as upstream. PatchType is not nil here: checkV1 and checkV1beta1 see to
// that.
func (r *request) patch(ctx context.Context, c *candidate, v *match.View, said *admissionv1.AdmissionResponse) (bool,
	error) {
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
	if v.Object.Converted == nil {
		return false, apierrors.NewInternalError(
			fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation",
				c.Name))
	}
	if t := *said.PatchType; t != admissionv1.PatchTypeJSONPatch {
		return false, &callError{c.Name, fmt.Errorf("unsupported patch type %q", t)}
	}
	was, err := v.Object.JSON()
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
	// A patch without an effect must not count as a change: each change asks for a second round.
	if apiequality.Semantic.DeepEqual(obj, v.Object.Converted) {
		return false, nil
	}
	return true, r.Replace(ctx, v, obj)
}

// decode makes an object of the patched document, which must still be of the kind that was patched. The errors repeat
// upstream's words, which name its internal packages.
func (r *request) decode(doc []byte, c *candidate, v *match.View) (runtime.Object, error) {
	obj := r.Empty(v)
	if u, ok := obj.(runtime.Unstructured); ok {
		if err := u.(interface{ UnmarshalJSON([]byte) error }).UnmarshalJSON(doc); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
	} else if err := strictjson.DecodeLoosely(doc, obj); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	got := obj.GetObjectKind().GroupVersionKind()
	if got.Group == "" && got.Version == "" { // what is not said is as it was
		got.Group, got.Version = c.Target.Kind.Group, c.Target.Kind.Version
	}
	switch {
	case got.Kind == "", got == c.Target.Kind:
	case got.Kind == c.Target.Kind.Kind:
		return nil, apierrors.NewInternalError(
			fmt.Errorf("no kind %q is registered for version %q", got.Kind, got.GroupVersion()))
	default:
		return nil, &apierrors.StatusError{
			ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
				Message: fmt.Sprintf("converting (%s.%s) to (%s.%s): unknown conversion", got.Version, got.Kind,
					resources.InternalPackage(c.Target.Kind.Group), c.Target.Kind.Kind)}}
	}
	obj.GetObjectKind().SetGroupVersionKind(c.Target.Kind)
	return obj, nil
}
