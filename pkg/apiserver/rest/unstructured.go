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

// pruner removes the fields that the schema does not know from an object without a Go type, and returns their paths.
// nil keeps everything.
type pruner func(obj runtime.Object) ([]string, error)

// readUnstructured decodes body into an object without a Go type. Its metadata is decoded as ObjectMeta, like every
// object's, because the server's own code reads it as that later. The rest is what prune leaves. strict are duplicate
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

// fitMetadata decodes content's metadata as ObjectMeta and writes it back, without unknown fields.
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
	// The encoder writes null for a zero time, which the client did not send.
	if typed.CreationTimestamp.IsZero() {
		delete(fit, "creationTimestamp")
	}
	content["metadata"] = fit
	return unknown, nil
}

// checkUnstructuredKind refuses a body that does not name the kind and version of the request. For other objects the Go
// type implies them; here nothing does.
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
