package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/webhook"
)

// The versions of AdmissionReview.
const (
	v1      = "v1"
	v1beta1 = "v1beta1"
)

// maxAnswer bounds a webhook's answer: a patch that replaces an object of the largest size fits, twice escaped.
const maxAnswer = 6 << 20

// errVersion is a configuration that was valid for another server.
var errVersion = errors.New("webhook does not accept known AdmissionReview versions (v1, v1beta1)")

// reviews decodes answers, in either version.
type reviews struct{ decoder runtime.Decoder }

// newReviews makes a decoder of the two versions of AdmissionReview. The scheme has nothing else in it, so that an
// answer of any other kind is an error and not an object of the API.
func newReviews() reviews {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionv1.AddToScheme, admissionv1beta1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // the scheme is empty: nothing can be taken
		}
	}
	return reviews{jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, s, s,
		jsonserializer.SerializerOptions{})}
}

// call asks a webhook and returns what it says, which was checked as upstream checks it. c.timeout is the webhook's own
// timeoutSeconds. Every failure is a callError, so that decide applies the failure policy to it.
func (r *request) call(ctx context.Context, c *candidate, v *match.View) (*admissionv1.AdmissionResponse, error) {
	uid := uuid.NewUUID()
	body, err := r.review(c, v, uid)
	if err != nil {
		return nil, &callError{c.Name, fmt.Errorf("could not create admission objects: %w", err)}
	}
	said, err := r.Client.Call(ctx, &c.to, body, c.timeout, maxAnswer)
	var unusable *webhook.HookError
	if errors.As(err, &unusable) {
		return nil, &callError{c.Name, fmt.Errorf("could not get REST client: %w", err)}
	}
	if err != nil {
		return nil, &callError{c.Name, fmt.Errorf("failed to call webhook: %w", err)}
	}
	out, err := r.reviews.read(said, c.version, uid, r.mutates)
	if err != nil {
		return nil, &callError{c.Name, err}
	}
	return out, nil
}

// review encodes the question to a webhook. uid is new for each call: it ties the answer to this question, and is not
// the object's.
func (r *request) review(c *candidate, v *match.View, uid types.UID) ([]byte, error) {
	about, err := r.Describe(c.Target)
	if err != nil {
		return nil, err
	}
	about.UID = uid
	if about.Object.Raw, err = v.Object.JSON(); err != nil {
		return nil, err
	}
	if about.OldObject.Raw, err = v.Old.JSON(); err != nil {
		return nil, err
	}
	switch c.version {
	case v1, v1beta1: // which have the same fields
		review := admissionv1.AdmissionReview{Request: about}
		review.SetGroupVersionKind(
			schema.GroupVersionKind{Group: admissionv1.GroupName, Version: c.version, Kind: "AdmissionReview"})
		return json.Marshal(&review)
	}
	return nil, errVersion
}

// read decodes and checks an answer.
func (rs reviews) read(said []byte, version string, uid types.UID, mutates bool) (*admissionv1.AdmissionResponse,
	error) {
	var into runtime.Object = &admissionv1.AdmissionReview{}
	if version == v1beta1 {
		into = &admissionv1beta1.AdmissionReview{}
	}
	out, _, err := rs.decoder.Decode(said, nil, into)
	if err == nil && out != into {
		err = fmt.Errorf("converting (%s) to (%s): unknown conversion", typeName(out), typeName(into))
	}
	if err != nil {
		return nil, fmt.Errorf("failed to call webhook: %w", err)
	}
	var response *admissionv1.AdmissionResponse
	if old, ok := into.(*admissionv1beta1.AdmissionReview); ok {
		response, err = checkV1beta1(old, mutates)
	} else {
		response, err = checkV1(into.(*admissionv1.AdmissionReview), uid, mutates)
	}
	if err != nil {
		return nil, fmt.Errorf("received invalid webhook response: %w", err)
	}
	return response, nil
}

func typeName(obj runtime.Object) string { return reflect.TypeOf(obj).Elem().String() }

var errNoResponse = errors.New("webhook response was absent")

// checkV1 is strict about everything that an answer must repeat. A wrong uid is a webhook that mixes up its answers, so
// none of them can be trusted. A patch and its type must come together.
func checkV1(r *admissionv1.AdmissionReview, uid types.UID, mutates bool) (*admissionv1.AdmissionResponse, error) {
	want := admissionv1.SchemeGroupVersion.WithKind("AdmissionReview")
	if got := r.GroupVersionKind(); got != want {
		return nil, fmt.Errorf("expected webhook response of %s, got %s", want, got)
	}
	out := r.Response
	switch {
	case out == nil:
		return nil, errNoResponse
	case out.UID != uid:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, out.UID)
	case !mutates && len(out.Patch) > 0:
		return nil, errors.New("validating webhook may not return response.patch")
	case !mutates && out.PatchType != nil:
		return nil, errors.New("validating webhook may not return response.patchType")
	case len(out.Patch) > 0 && out.PatchType == nil:
		return nil, errors.New("webhook returned response.patch but not response.patchType")
	case len(out.Patch) == 0 && out.PatchType != nil:
		return nil, errors.New("webhook returned response.patchType but not response.patch")
	}
	return out, nil
}

// checkV1beta1 takes what older webhooks leave out.
func checkV1beta1(r *admissionv1beta1.AdmissionReview, mutates bool) (*admissionv1.AdmissionResponse, error) {
	in := r.Response
	if in == nil {
		return nil, errNoResponse
	}
	out := &admissionv1.AdmissionResponse{UID: in.UID, Allowed: in.Allowed, Result: in.Result,
		AuditAnnotations: in.AuditAnnotations, Warnings: in.Warnings}
	if mutates && len(in.Patch) > 0 {
		// the only one, which many did not name
		out.Patch, out.PatchType = in.Patch, ptr.To(admissionv1.PatchTypeJSONPatch)
	}
	return out, nil
}
