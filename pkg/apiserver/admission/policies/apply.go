package policies

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/cel-go/common/types/ref"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/patch"
	"bonsai/pkg/strictjson"
)

// patch makes another object of v's by a JSON patch; nil: it stays as it is. The policy computes the patch, so its
// operations depend on the object. A failure before the document is decoded is the policy's, and its failurePolicy
// applies. A document that is no object of the kind is a Status error and ends the request.
func (e *evaluation) patch(ctx context.Context, made ref.Val, v *match.View) (runtime.Object, error) {
	doc, err := expression.JSONPatch(made)
	if err != nil {
		return nil, err
	}
	read, err := patch.Read(types.JSONPatchType, doc, nil)
	if err != nil {
		return nil, fmt.Errorf("JSON Patch: %w", err)
	}
	if read.Empty {
		return nil, nil
	}
	was, err := v.Object.JSON()
	if err != nil {
		return nil, err
	}
	is, err := read.To(ctx, was)
	switch {
	case errors.Is(err, jsonpatch.ErrTestFailed): // the policy's way to say "if"
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("JSON Patch: %w", patch.Cause(err))
	}
	obj := e.request.Empty(v)
	if err := decode(is, obj); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if got := obj.GetObjectKind().GroupVersionKind(); !got.Empty() &&
		got != v.Object.Converted.GetObjectKind().GroupVersionKind() {
		return nil, apierrors.NewInternalError(fmt.Errorf("a JSON patch made an object of %s, not of %s", got, v.Kind))
	}
	obj.GetObjectKind().SetGroupVersionKind(v.Kind)
	return obj, nil
}

// decode is strict: what a policy adds must be a field of the kind.
func decode(doc []byte, obj runtime.Object) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.UnmarshalJSON(doc)
	}
	unknown, err := strictjson.Decode(doc, obj)
	if err == nil && len(unknown) > 0 {
		err = runtime.NewStrictDecodingError(unknown)
	}
	return err
}

// apply merges an apply configuration into v's object. The merge follows the schema, as server-side apply does: lists
// with keys are merged by their keys. The policy cannot change kind or version, because they are set from the view.
func (e *evaluation) apply(_ context.Context, made ref.Val, v *match.View) (runtime.Object, error) {
	config, err := expression.Config(made)
	if err != nil {
		return nil, err
	}
	if len(config) == 0 {
		return nil, nil
	}
	resource := e.Matcher.Catalog.Snapshot().Resource(v.Resource.GroupResource())
	if resource == nil {
		return nil, fmt.Errorf("error applying patch: %s are not served", v.Resource.GroupResource())
	}
	config["apiVersion"], config["kind"] = v.Kind.GroupVersion().String(), v.Kind.Kind
	merged, err := e.Merger.Merge(resource.Row, v.Kind, v.Object.Converted, config)
	if err != nil {
		return nil, fmt.Errorf("error applying patch: %w", err)
	}
	obj := e.request.Empty(v)
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object = merged
	} else if err := runtime.DefaultUnstructuredConverter.FromUnstructured(merged, obj); err != nil {
		return nil, fmt.Errorf("error applying patch: %w", err)
	}
	obj.GetObjectKind().SetGroupVersionKind(v.Kind)
	return obj, nil
}
