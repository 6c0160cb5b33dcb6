package structural

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ruleCheck tells what the rules of a schema have against a value.
type ruleCheck func(s *Schema, root bool, path *field.Path, value any) field.ErrorList

// checkDefaults checks that the defaults are values that the schema allows, and compiles all of it.
func checkDefaults(p *props, path *field.Path, rules ruleCheck) field.ErrorList {
	s, err := Compile(p)
	if err != nil {
		if errors.Is(err, ErrTooLarge) {
			return field.ErrorList{field.Forbidden(path, err.Error())}
		}
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	return s.checkDefaults(path, true, rules)
}

func (s *Schema) checkDefaults(path *field.Path, root bool, rules ruleCheck) field.ErrorList {
	var errs field.ErrorList
	if s.hasFallback {
		errs = append(errs, s.checkDefault(path.Child("default"), root, rules)...)
	}
	if !s.defaultsBelow {
		return errs
	}
	for _, m := range s.members {
		errs = append(errs, m.schema.checkDefaults(path.Child("properties").Key(m.name), false, rules)...)
	}
	if s.items != nil {
		errs = append(errs, s.items.checkDefaults(path.Child("items"), false, rules)...)
	}
	// Kubernetes does not look below additionalProperties.
	return errs
}

func (s *Schema) checkDefault(path *field.Path, root bool, rules ruleCheck) field.ErrorList {
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
	whole := *s
	whole.embedded = s.embedded || root
	errs := whole.walkEmbedded(s.fallback, path, coerceEmbedded(nil))
	errs = append(errs, whole.walkEmbedded(s.fallback, path, validateEmbedded)...)
	c := checker{path: path, anyIntOrString: true}
	errs = append(errs, slices.Clip(c.value(s, s.fallback, nil, false, nil).errors)...)
	if len(errs) > 0 {
		return errs
	}
	return rules(s, root, path, s.fallback)
}
