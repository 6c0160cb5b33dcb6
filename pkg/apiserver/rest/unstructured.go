package rest

import (
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"
)

// pruner drops from an object without a Go type what its schema does not know, and returns the paths of that; nil:
// everything is kept.
type pruner func(obj runtime.Object) ([]string, error)

// readUnstructured decodes body into an object that has no Go type. Its metadata is read as that of every object, so
// that nothing stands there that others would stumble over; the rest is what prune leaves of it. strict are duplicate
// and unknown fields.
func readUnstructured(body []byte, into runtime.Unstructured, prune pruner) (strict []error, err error) {
	content := map[string]any{}
	if strict, err = sigsjson.UnmarshalStrict(body, &content); err != nil {
		return nil, err
	}
	if content == nil { // null: decoding reports that its kind is missing
		into.SetUnstructuredContent(map[string]any{})
		return strict, nil
	}
	unknown, err := fitMetadata(content)
	if err != nil {
		return nil, err
	}
	strict = append(strict, unknown...)
	into.SetUnstructuredContent(content)
	if prune != nil {
		paths, err := prune(into)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			strict = append(strict, fmt.Errorf("unknown field %q", path))
		}
	}
	return strict, nil
}

// fitMetadata makes content's metadata what ObjectMeta has.
func fitMetadata(content map[string]any) (unknown []error, err error) {
	raw, err := json.Marshal(content["metadata"])
	if err != nil {
		return nil, err
	}
	var typed metav1.ObjectMeta
	strict, err := sigsjson.UnmarshalStrict(raw, &typed)
	if err != nil {
		return nil, err
	}
	for _, e := range strict {
		var of sigsjson.FieldError
		if errors.As(e, &of) {
			of.SetFieldPath("metadata." + of.FieldPath())
		}
		unknown = append(unknown, e)
	}
	fit, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	if err != nil {
		return nil, err
	}
	if typed.CreationTimestamp.IsZero() {
		delete(fit, "creationTimestamp")
	}
	content["metadata"] = fit
	return unknown, nil
}

// checkUnstructuredKind refuses a body that does not name the request's kind and version itself: there is no Go type
// that would.
func checkUnstructuredKind(u runtime.Unstructured, want schema.GroupVersionKind, body []byte) error {
	content := u.UnstructuredContent()
	version, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	if kind == "" {
		return unrecognized(want, runtime.NewMissingKindErr(string(body)), body)
	}
	gv, err := schema.ParseGroupVersion(version)
	switch {
	case err != nil:
		return unrecognized(want, err, body)
	case gv != want.GroupVersion():
		return apierrors.NewBadRequest(
			fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", version,
				want.GroupVersion()))
	case kind != want.Kind:
		name, _, _ := unstructured.NestedString(content, "metadata", "name")
		return apierrors.NewInvalid(gv.WithKind(kind).GroupKind(), name,
			field.ErrorList{field.Invalid(field.NewPath("kind"), kind, "must be "+want.Kind)})
	}
	return nil
}
