package structural

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// visitEmbedded checks or changes one embedded resource.
type visitEmbedded func(obj map[string]any, at *field.Path) field.ErrorList

// walkEmbedded calls visit with the embedded resources in v and their paths.
//
// An embedded resource is a whole object, with apiVersion and kind, inside another object. s.below.embedded keeps the
// walk out of all other parts. Values of maps are visited in the order of their keys, because visit may report errors.
func (s *Schema) walkEmbedded(v any, at *field.Path, visit visitEmbedded) (errs field.ErrorList) {
	if s == nil || !s.embedded && !s.below.embedded {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		if s.embedded {
			errs = visit(v, at)
		}
		if !s.below.embedded {
			return errs
		}
		for _, m := range s.members {
			if value, ok := v[m.name]; ok {
				errs = append(errs, m.schema.walkEmbedded(value, at.Child(m.name), visit)...)
			}
		}
		if s.additional != nil {
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if _, ok := s.properties[name]; !ok {
					errs = append(errs, s.additional.walkEmbedded(v[name], at.Key(name), visit)...)
				}
			}
		}
	case []any:
		for i, item := range v {
			errs = append(errs, s.items.walkEmbedded(item, at.Index(i), visit)...)
		}
	}
	return errs
}

// CoerceEmbedded drops unknown fields from the metadata of embedded resources, in place, and returns their sorted
// paths. It returns an error for apiVersion, kind or metadata of another type.
//
// It is a part of pruning: the schema of metadata is ObjectMeta's, whatever the definition says, as for top-level
// objects.
func (s *Schema) CoerceEmbedded(obj map[string]any) (unknown []string, errs field.ErrorList) {
	errs = s.walkEmbedded(obj, nil, coerceEmbedded(&unknown))
	slices.Sort(unknown)
	return unknown, errs
}

// coerceEmbedded coerces one resource, and adds what it drops to unknown. If unknown is nil, it only checks.
func coerceEmbedded(unknown *[]string) visitEmbedded {
	return func(obj map[string]any, at *field.Path) field.ErrorList {
		for _, name := range []string{"apiVersion", "kind"} {
			if v, ok := obj[name]; ok {
				if _, ok := v.(string); !ok {
					return field.ErrorList{field.Invalid(at.Child(name), v, "must be a string")}
				}
			}
		}
		given, ok := obj["metadata"]
		if !ok {
			return nil
		}
		at = at.Child("metadata")
		meta, lost, err := coerceMeta(given)
		if err != nil {
			return field.ErrorList{field.Invalid(at, given, err.Error())}
		}
		// Defaults must not change, so nothing is written back.
		if unknown == nil {
			return nil
		}
		for _, path := range lost {
			*unknown = append(*unknown, at.String()+"."+path)
		}
		obj["metadata"] = meta
		return nil
	}
}

// coerceMeta decodes metadata as ObjectMeta and encodes it again, without the fields that ObjectMeta does not have. The
// detour through JSON finds unknown fields at any depth and normalizes timestamps. It costs two encodings, but embedded
// resources are rare.
func coerceMeta(v any) (meta map[string]any, unknown []string, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, nil, err
	}
	var typed metav1.ObjectMeta
	strict, err := kjson.UnmarshalStrict(raw, &typed, kjson.DisallowUnknownFields)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range strict {
		if f, ok := e.(kjson.FieldError); ok {
			unknown = append(unknown, f.FieldPath())
		}
	}
	meta, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	return meta, unknown, err
}

// ValidateEmbedded checks that embedded resources have what every object must have: apiVersion, kind and valid
// metadata.
func (s *Schema) ValidateEmbedded(obj map[string]any) field.ErrorList {
	return s.walkEmbedded(obj, nil, validateEmbedded)
}

// The scope of the embedded kind is unknown, so a namespace is allowed and not required.
func validateEmbedded(obj map[string]any, at *field.Path) field.ErrorList {
	errs := append(validateAPIVersion(obj["apiVersion"], at.Child("apiVersion")),
		validateKind(obj, at.Child("kind"))...)
	given, ok := obj["metadata"].(map[string]any)
	if !ok {
		return errs
	}
	raw, err := json.Marshal(given)
	if err != nil {
		return append(errs, field.InternalError(at.Child("metadata"), err))
	}
	var meta metav1.ObjectMeta
	if err := json.Unmarshal(raw, &meta); err != nil {
		return append(errs, field.Invalid(at.Child("metadata"), given, err.Error()))
	}
	if meta.Name == "" {
		meta.Name = "unnamed" // an embedded resource may have no name
	}
	namespaced := meta.Namespace != ""
	return append(errs,
		apivalidation.ValidateObjectMeta(&meta, namespaced, path.ValidatePathSegmentName, at.Child("metadata"))...)
}

func validateAPIVersion(v any, at *field.Path) field.ErrorList {
	text, _ := v.(string)
	if text == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if _, err := schema.ParseGroupVersion(text); err != nil {
		return field.ErrorList{field.Invalid(at, text, err.Error())}
	}
	return nil
}

func validateKind(obj map[string]any, at *field.Path) field.ErrorList {
	v, ok := obj["kind"]
	text, _ := v.(string)
	switch {
	case !ok:
		return field.ErrorList{field.Required(at, "")}
	case text == "":
		return field.ErrorList{field.Invalid(at, text, "must not be empty")}
	}
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1035Label(strings.ToLower(text)) {
		errs = append(errs, field.Invalid(at, text, "may have mixed case, but should otherwise match: "+msg))
	}
	return errs
}
