package customresource

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func copyOf(v any) any { return runtime.DeepCopyJSONValue(v) }

// Validate tells what is wrong with a new object, besides its own metadata, which is checked as every object's.
func (t *Type) Validate(u *unstructured.Unstructured) field.ErrorList {
	errs := t.schema.Validate(nil, u.Object, nil)
	errs = append(errs, t.schema.ValidateEmbedded(u.Object)...)
	errs = append(errs, t.schema.ValidateLists(nil, u.Object)...)
	return append(errs, t.validateScale(u, true, true)...)
}

// ValidateUpdate tells what is wrong with what old becomes. What was wrong before and has not changed is no error.
func (t *Type) ValidateUpdate(u, old *unstructured.Unstructured) field.ErrorList {
	errs := t.schema.Validate(nil, u.Object, old.Object)
	errs = append(errs, t.schema.ValidateEmbedded(u.Object)...)
	errs = append(errs, t.newDuplicates(u, old)...)
	return append(errs, t.validateScale(u, true, true)...)
}

// ValidateStatusUpdate tells what is wrong with the status of u.
func (t *Type) ValidateStatusUpdate(u, old *unstructured.Unstructured) field.ErrorList {
	var errs field.ErrorList
	if status, ok := u.Object["status"]; ok && t.status != nil {
		errs = t.status.Validate(field.NewPath("status"), status, old.Object["status"])
	}
	errs = append(errs, t.newDuplicates(u, old)...)
	return append(errs, t.validateScale(u, false, true)...)
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
		n, ok, err := unstructured.NestedInt64(u.Object, strings.Split(strings.TrimPrefix(path, "."), ".")...)
		if err == nil && ok && n < 0 {
			errs = append(errs, field.Invalid(field.NewPath(path), n, "should be a non-negative integer"))
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
