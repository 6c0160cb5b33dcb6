package structural

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ruleCheck returns why the CEL rules of a schema reject a value. It is a parameter because package rules imports this
// package, and not the other way round.
type ruleCheck func(s *Schema, root bool, path *field.Path, value any) field.ErrorList

// checkDefaults checks that the schema compiles, and that its defaults are values that it allows.
//
// Compiling is itself a check: it enforces the bounds in compile.go. A schema beyond them is forbidden, and a schema
// with malformed JSON in a default or an enumeration, or an invalid pattern, is invalid.
func checkDefaults(p *props, path *field.Path, rules ruleCheck) field.ErrorList {
	s, err := Compile(p)
	if err != nil {
		if errors.Is(err, errTooLarge) {
			return field.ErrorList{field.Forbidden(path, err.Error())}
		}
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	return s.checkDefaults(path, true, rules)
}

// checkDefaults checks the defaults of s and below.
//
// The walk skips subtrees without defaults. Schemas in allOf, anyOf, oneOf and not cannot have any
// (structuralKeywords).
func (s *Schema) checkDefaults(path *field.Path, root bool, rules ruleCheck) field.ErrorList {
	var errs field.ErrorList
	if s.hasFallback {
		errs = append(errs, s.checkDefault(path.Child("default"), root, rules)...)
	}
	if !s.below.defaults {
		return errs
	}
	for _, m := range s.members {
		errs = append(errs, m.schema.checkDefaults(path.Child("properties").Key(m.name), false, rules)...)
	}
	if s.items != nil {
		errs = append(errs, s.items.checkDefaults(path.Child("items"), false, rules)...)
	}
	// Like Kubernetes, this does not check defaults below additionalProperties.
	return errs
}

// checkDefault checks the default of s. The CEL rules come last, because they expect values of the right types.
//
// A default must be a value that a client could have sent and that the server would store unchanged: without unknown
// fields, with valid embedded resources, and valid under the schema. Otherwise the server itself would make objects
// that it then refuses.
func (s *Schema) checkDefault(path *field.Path, root bool, rules ruleCheck) field.ErrorList {
	// Pruning changes its argument, and s.fallback belongs to the schema.
	v := runtime.DeepCopyJSONValue(s.fallback)
	p := pruner{}
	if obj, ok := v.(map[string]any); ok {
		p.object(s, obj, root || s.embedded, s.keeps, nil)
	} else {
		p.value(s, v, false, nil)
	}
	if len(p.unknown) > 0 {
		return field.ErrorList{field.Invalid(path, s.fallback, "must not have unknown fields")}
	}
	// A default at the root is an object with apiVersion, kind and metadata like an embedded resource. The copy lets
	// one walk check both.
	whole := *s
	whole.embedded = s.embedded || root
	errs := whole.walkEmbedded(s.fallback, path, coerceEmbedded(nil))
	errs = append(errs, whole.walkEmbedded(s.fallback, path, validateEmbedded)...)
	c := validator{path: path, anyIntOrString: true}
	errs = append(errs, slices.Clip(c.value(s, s.fallback, previous{}, nil).errors)...)
	if len(errs) > 0 {
		return errs
	}
	return rules(s, root, path, s.fallback)
}
