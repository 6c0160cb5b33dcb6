package customresource

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	pathsegment "k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func copyOf(v any) any { return runtime.DeepCopyJSONValue(v) }

// Validate tells what is wrong with a new object, besides its own metadata, which is checked as every object's. The end
// of ctx ends the evaluation of its rules, which is an error.
func (t *Type) Validate(ctx context.Context, u *unstructured.Unstructured) field.ErrorList {
	errs := t.schema.Validate(nil, u.Object, nil)
	errs = append(errs, t.schema.ValidateEmbedded(u.Object)...)
	errs = append(errs, t.schema.ValidateLists(nil, u.Object)...)
	if t.schema.HasRules() && (metadataBlocks(u) || slices.ContainsFunc(errs, blocks)) {
		errs = append(errs, unchecked())
	} else if t.schema.HasRules() {
		errs = append(errs, t.rules().Validate(ctx, u.Object)...)
	}
	return append(errs, t.validateScale(u, true, true)...)
}

// ValidateUpdate returns what is wrong with what old becomes. What was wrong before and has not changed is no error;
// if a CEL rule finds it, kept has a warning about it.
func (t *Type) ValidateUpdate(ctx context.Context, u, old *unstructured.Unstructured) (errs field.ErrorList,
	kept []string) {
	errs = t.schema.Validate(nil, u.Object, old.Object)
	errs = append(errs, t.schema.ValidateEmbedded(u.Object)...)
	errs = append(errs, t.newDuplicates(u, old)...)
	errs, kept = t.askRules(ctx, errs, u, old)
	return append(errs, t.validateScale(u, true, true)...), kept
}

// ValidateStatusUpdate returns what is wrong with the status of u, and what ValidateUpdate returns as kept.
func (t *Type) ValidateStatusUpdate(ctx context.Context, u, old *unstructured.Unstructured) (errs field.ErrorList,
	kept []string) {
	if status, ok := u.Object["status"]; ok && t.status != nil {
		errs = t.status.Validate(field.NewPath("status"), status, old.Object["status"])
	}
	errs = append(errs, t.newDuplicates(u, old)...)
	errs, kept = t.askRules(ctx, errs, u, old)
	return append(errs, t.validateScale(u, false, true)...), kept
}

// askRules adds to errs what the CEL rules find in an update, unless errs make it impossible to ask them. It returns
// warnings about the faults that were there before.
func (t *Type) askRules(ctx context.Context, errs field.ErrorList, u, old *unstructured.Unstructured) (
	all field.ErrorList, kept []string) {
	switch {
	case !t.schema.HasRules():
		return errs, nil
	case slices.ContainsFunc(errs, blocks):
		return append(errs, unchecked()), nil
	}
	set := t.rules()
	return append(errs, set.ValidateUpdate(ctx, u.Object, old.Object)...), set.Warnings(ctx, u.Object, old.Object)
}

// unchecked is the error that stands for rules that could not be asked.
func unchecked() *field.Error {
	return field.Invalid(nil, nil,
		"some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")
}

// blocks reports whether rules cannot be asked about an object with this error: its values are not of their types, or
// too many.
func blocks(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
		field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// metadataBlocks reports whether invalid metadata, such as a missing name, keeps the rules from running on a new
// object. The validation of metadata reports the fault itself.
func metadataBlocks(u *unstructured.Unstructured) bool {
	errs := validation.ValidateObjectMetaAccessor(u, false, pathsegment.ValidatePathSegmentName,
		field.NewPath("metadata"))
	return slices.ContainsFunc(errs, blocks)
}

// newDuplicates are the items that stand twice in lists that are sets or maps, unless old had such, too.
func (t *Type) newDuplicates(u, old *unstructured.Unstructured) field.ErrorList {
	errs := t.schema.ValidateLists(nil, u.Object)
	if len(errs) > 0 && len(t.schema.ValidateLists(nil, old.Object)) > 0 {
		return nil
	}
	return errs
}

// validateScale checks the numbers that the scale subresource shows.
func (t *Type) validateScale(u *unstructured.Unstructured, spec, status bool) field.ErrorList {
	if t.scale == nil {
		return nil
	}
	var errs field.ErrorList
	check := func(path string) {
		n, _, err := unstructured.NestedInt64(u.Object, strings.Split(strings.TrimPrefix(path, "."), ".")...)
		switch path := field.NewPath(path); {
		case err != nil:
			errs = append(errs, field.Invalid(path, n, err.Error()))
		case n < 0:
			errs = append(errs, field.Invalid(path, n, "should be a non-negative integer"))
		case n > math.MaxInt32:
			errs = append(errs, field.Invalid(path, n,
				fmt.Sprintf("should be less than or equal to %d", math.MaxInt32)))
		}
	}
	if spec {
		check(t.scale.SpecReplicasPath)
	}
	if status {
		check(t.scale.StatusReplicasPath)
	}
	return errs
}
