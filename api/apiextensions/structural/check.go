package structural

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// props abbreviates the type of the schemas in a CustomResourceDefinition.
type props = apiextensionsv1.JSONSchemaProps

// Check returns why a schema cannot be that of custom resources. A schema must use only supported keywords, and be
// structural and complete, and its defaults must be valid. For every default that is otherwise valid, Check asks rules
// whether the schema's CEL rules accept it.
//
// The API server calls it (by rules.Check) when a CustomResourceDefinition is created or updated, on the goroutine of
// the request. The order limits the work: a schema that fails one step is not compiled, and rules see only values of
// the right types.
func Check(p *props, path *field.Path, rules ruleCheck) field.ErrorList {
	errs := CheckStructural(p, path)
	if p.Nullable {
		errs = append(errs, field.Forbidden(path.Child("nullable"), "nullable cannot be true at the root"))
	}
	if len(errs) > 0 {
		return errs
	}
	return checkDefaults(p, path, rules)
}

// CheckStructural returns why a schema is not structural. If it has keywords without a compiled form, only these are
// reported.
//
// NonStructural (approval.go) calls it as well, for the condition NonStructuralSchema of stored definitions. Keywords
// without a compiled form stop it, because the checks that follow would judge a schema that is only partly known.
func CheckStructural(p *props, path *field.Path) field.ErrorList {
	errs := checkSupported(p, path)
	if !isConvertible(p) {
		return errs
	}
	errs = append(errs, checkStructural(p, path, rootLevel)...)
	return append(errs, checkComplete(p, p, path, path)...)
}

// Walk calls visit with p and all schemas below it, and their paths, in a fixed order. Properties go by name, so that
// errors are the same in every run.
func Walk(p *props, path *field.Path, visit func(p *props, path *field.Path)) {
	visit(p, path)
	each(p, path, func(p *props, path *field.Path) { Walk(p, path, visit) })
}

// each calls visit with the schemas directly below p, and their paths, in a fixed order.
func each(p *props, path *field.Path, visit func(p *props, path *field.Path)) {
	eachStructural(p, path, func(p *props, path *field.Path, _ level) { visit(p, path) })
	eachNested(p, path, visit)
}

// level says what a schema describes. Schemas in allOf, anyOf, oneOf and not have no level: they only restrict values.
type level int

// Only the words of errors and the rules for the root differ between levels.
const (
	rootLevel  level = iota // the object
	fieldLevel              // a field of an object, or a value of a map
	itemLevel               // an item of a list
)

// eachStructural visits the schemas below p that describe the parts of a value.
func eachStructural(p *props, path *field.Path, visit func(p *props, path *field.Path, as level)) {
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		// A copy: map values have no address.
		below := p.Properties[name]
		visit(&below, path.Child("properties").Key(name), fieldLevel)
	}
	if p.Items != nil && p.Items.Schema != nil {
		visit(p.Items.Schema, path.Child("items"), itemLevel)
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		visit(p.AdditionalProperties.Schema, path.Child("additionalProperties"), fieldLevel)
	}
}

// eachNested visits the schemas below p that only restrict a value (upstream: nested value validations).
func eachNested(p *props, path *field.Path, visit func(p *props, path *field.Path)) {
	for _, list := range []struct {
		name string
		of   []props
	}{{"allOf", p.AllOf}, {"anyOf", p.AnyOf}, {"oneOf", p.OneOf}} {
		for i := range list.of {
			visit(&list.of[i], path.Child(list.name).Index(i))
		}
	}
	if p.Not != nil {
		visit(p.Not, path.Child("not"))
	}
}

// isConvertible reports whether a schema has only keywords that the compiled form has. It looks at the whole tree
// before any other check does, and checkSupported has reported the keywords that it finds.
func isConvertible(p *props) bool {
	ok := len(unsupported(p)) == 0 && (p.Items == nil || len(p.Items.JSONSchemas) == 0)
	each(p, nil, func(p *props, _ *field.Path) { ok = ok && isConvertible(p) })
	return ok
}
