package customresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"

	"bonsai/api/apiextensions"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/docbounds"
)

// Bounds of one call of a conversion webhook: how long it may take, how many bytes of objects it is given (and one
// object at least), and how much longer its answer may be than what it was asked.
const (
	reviewTimeout = 30 * time.Second
	reviewBytes   = 4 << 20
	reviewGrowth  = 4 << 20
)

// What an answer may become when it is decoded: as much for each object as a client may send, in so many objects at
// once; each value may cost a hundred times its bytes.
const (
	answerValues    = 100_000
	maxAnswerValues = 1_000_000
	answerDepth     = 300
)

// ask has the webhook convert objs, which are all of other versions than to, a portion at a time.
func (c converter) ask(ctx context.Context, to schema.GroupVersion,
	objs []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	var raw []runtime.RawExtension
	size := 0
	for i, u := range objs {
		b, err := json.Marshal(u.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", u.GroupVersionKind(), err)
		}
		raw, size = append(raw, runtime.RawExtension{Raw: b}), size+len(b)
		if size < reviewBytes && i < len(objs)-1 {
			continue
		}
		converted, err := c.review(ctx, to, objs[len(out):i+1], raw, size)
		if err != nil {
			return nil, err
		}
		out, raw, size = append(out, converted...), nil, 0
	}
	return out, nil
}

// review is one call.
func (c converter) review(ctx context.Context, to schema.GroupVersion, objs []*unstructured.Unstructured,
	raw []runtime.RawExtension, size int) ([]*unstructured.Unstructured, error) {
	gvk := objs[0].GroupVersionKind()
	failed := func(format string, args ...any) error {
		return registry.Plain(fmt.Errorf("conversion webhook for %s %s", gvk, fmt.Sprintf(format, args...)))
	}
	speaks := c.speaks()
	if speaks == "" {
		return nil, failed("failed: no ConversionReview version is known to both sides")
	}
	asked := &v1.ConversionReview{
		Request: &v1.ConversionRequest{UID: types.UID(c.uid()), DesiredAPIVersion: to.String(), Objects: raw}}
	asked.APIVersion, asked.Kind = v1.GroupName+"/"+speaks, "ConversionReview"
	body, err := json.Marshal(asked)
	if err != nil {
		return nil, failed("failed: %v", err)
	}
	begun := c.now()
	answer, err := c.hook.Call(ctx, body, reviewTimeout, int64(size+reviewGrowth))
	c.observe(c.now().Sub(begun), err)
	if err != nil {
		return nil, failed("failed: %v", err)
	}
	if err := docbounds.JSON(answer,
		docbounds.Bounds{Values: min(answerValues*len(objs), maxAnswerValues), Depth: answerDepth}); err != nil {
		return nil, failed("failed: the answer is refused: %v", err)
	}
	converted, err := readReview(answer, asked)
	if err != nil {
		return nil, failed("failed: %v", err)
	}
	if len(converted) != len(objs) {
		return nil, failed("returned %d objects, expected %d", len(converted), len(objs))
	}
	out := make([]*unstructured.Unstructured, len(objs))
	for i, r := range converted {
		if out[i], err = readConverted(r); err != nil {
			return nil, registry.Plain(err)
		}
		if err := rightKind(out[i], objs[i], to); err != nil {
			return nil, failed("returned invalid object at index %d: %v", i, err)
		}
		if err := sameObject(out[i], objs[i]); err != nil {
			return nil, failed("returned invalid object: %v", err)
		}
		if err := restoreMetadata(out[i], objs[i]); err != nil {
			return nil, failed("returned invalid metadata: %v", err)
		}
	}
	return out, nil
}

// speaks is the first of the definition's review versions that this server knows; "" if there is none.
func (c converter) speaks() string {
	if c.crd.Spec.Conversion == nil || c.crd.Spec.Conversion.Webhook == nil {
		return ""
	}
	for _, v := range c.crd.Spec.Conversion.Webhook.ConversionReviewVersions {
		if slices.Contains(apiextensions.ReviewVersions(), v) {
			return v
		}
	}
	return ""
}

// readReview returns the objects of an answer to asked.
func readReview(answer []byte, asked *v1.ConversionReview) ([]runtime.RawExtension, error) {
	var got v1.ConversionReview
	if err := json.Unmarshal(answer, &got); err != nil {
		return nil, err
	}
	if got.APIVersion != asked.APIVersion || got.Kind != asked.Kind {
		return nil, fmt.Errorf("expected webhook response of %s, Kind=%s, got %s, Kind=%s", asked.APIVersion,
			asked.Kind, got.APIVersion, got.Kind)
	}
	r := got.Response
	switch {
	case r == nil:
		return nil, errors.New("no response provided")
	case asked.APIVersion == v1.SchemeGroupVersion.String() && r.UID != asked.Request.UID: // v1beta1 need not say it
		return nil, fmt.Errorf("expected response.uid=%q, got %q", asked.Request.UID, r.UID)
	case r.Result.Status != metav1.StatusSuccess:
		if r.Result.Message == "" {
			return nil, fmt.Errorf("response.result.status was '%s', not '%s'", r.Result.Status, metav1.StatusSuccess)
		}
		return nil, errors.New(r.Result.Message)
	}
	return r.ConvertedObjects, nil
}

// readConverted decodes an object of an answer.
func readConverted(raw runtime.RawExtension) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, &u.Object); err != nil {
		return nil, err
	}
	if u.GetKind() == "" {
		return nil, runtime.NewMissingKindErr(string(raw.Raw))
	}
	return u, nil
}

// rightKind checks that u is of the version that was asked for, and of the kind of was.
func rightKind(u, was *unstructured.Unstructured, to schema.GroupVersion) error {
	switch {
	case u.GetAPIVersion() != to.String():
		return fmt.Errorf("invalid groupVersion (expected %s, received %s)", to, u.GetAPIVersion())
	case u.GetKind() != was.GetKind():
		return fmt.Errorf("invalid kind (expected %s, received %s)", was.GetKind(), u.GetKind())
	}
	return nil
}

// sameObject checks that u is what became of was.
func sameObject(u, was *unstructured.Unstructured) error {
	switch {
	case u.GetName() != was.GetName():
		return fmt.Errorf("must have the same name: %v != %v", was.GetName(), u.GetName())
	case u.GetNamespace() != was.GetNamespace():
		return fmt.Errorf("must have the same namespace: %v != %v", was.GetNamespace(), u.GetNamespace())
	case u.GetUID() != was.GetUID():
		return fmt.Errorf("must have the same UID: %v != %v", was.GetUID(), u.GetUID())
	}
	return nil
}

// textsOf are the labels or annotations of the metadata of a converted object.
func textsOf(metadata map[string]any, key string) (map[string]string, error) {
	in, ok := metadata[key].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("metadata.%s must be an object, but is %T in converted object", key, metadata[key])
	}
	out := make(map[string]string, len(in))
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if out[name], ok = in[name].(string); !ok {
			return nil, fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", key, name,
				in[name])
		}
	}
	return out, nil
}

// restoreMetadata gives a converted object all of the metadata that it had before but labels and annotations, which a
// webhook may change.
func restoreMetadata(u, was *unstructured.Unstructured) error {
	got, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return errors.New("invalid metadata of type " + fmt.Sprintf("%T", u.Object["metadata"]) + " in input object")
	}
	old, _ := was.Object["metadata"].(map[string]any)
	now := runtime.DeepCopyJSON(old)
	path := field.NewPath("metadata")
	var errs field.ErrorList
	for _, key := range []string{"labels", "annotations"} {
		value, ok := got[key]
		if !ok || value == nil {
			delete(now, key)
			continue
		}
		texts, err := textsOf(got, key)
		if err != nil {
			return err
		}
		if key == "labels" {
			errs = append(errs, validation.ValidateLabels(texts, path.Child(key))...)
		}
		now[key] = value
	}
	u.Object["metadata"] = now
	return errs.ToAggregate()
}
