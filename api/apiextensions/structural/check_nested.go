package structural

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// structuralKeywords are the keywords that a nested schema must not have, because only the schema that it restricts may
// describe a value. They are in the order of their errors.
//
// If allOf or anyOf could set a type or a default, the type of a field would depend on which alternative a value
// matches. Pruning and defaulting would then have to validate first.
var structuralKeywords = [...]struct {
	name, must string
	in         func(p *props) bool
}{
	{"description", "empty", func(p *props) bool { return p.Description != "" }},
	{"title", "empty", func(p *props) bool { return p.Title != "" }},
	{"type", "empty", func(p *props) bool { return p.Type != "" }},
	{"default", "undefined", func(p *props) bool { return p.Default != nil }},
	{"additionalProperties", "undefined", func(p *props) bool { return p.AdditionalProperties != nil }},
	{"nullable", "false", func(p *props) bool { return p.Nullable }},
	{"x-kubernetes-preserve-unknown-fields", "false", preserves},
	{"x-kubernetes-embedded-resource", "false", func(p *props) bool { return p.XEmbeddedResource }},
	{"x-kubernetes-int-or-string", "false", func(p *props) bool { return p.XIntOrString }},
	{"x-kubernetes-list-map-keys", "empty", func(p *props) bool { return len(p.XListMapKeys) > 0 }},
	{"x-kubernetes-list-type", "undefined", func(p *props) bool { return p.XListType != nil }},
	{"x-kubernetes-map-type", "undefined", func(p *props) bool { return p.XMapType != nil }},
	{"x-kubernetes-validations", "empty", func(p *props) bool { return len(p.XValidations) > 0 }},
}

// checkNested returns the keywords that a nested schema must not have. typed: it may have a type. typedBelow: the first
// two schemas of its anyOf may.
//
// The exception for types is the pattern that upstream's documentation allows beside x-kubernetes-int-or-string
// (choosesIntOrString). Pointers identify the two schemas, because equal schemas elsewhere are not excepted.
func checkNested(p *props, path *field.Path, typed, typedBelow bool) field.ErrorList {
	var errs field.ErrorList
	for _, keyword := range structuralKeywords {
		if keyword.in(p) && !(typed && keyword.name == "type") {
			errs = append(errs,
				field.Forbidden(path.Child(keyword.name), "must be "+keyword.must+" to be structural"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		below := p.Properties[name]
		errs = append(errs, checkNested(&below, path.Child("properties").Key(name), false, false)...)
	}
	if p.Items != nil && p.Items.Schema != nil {
		errs = append(errs, checkNested(p.Items.Schema, path.Child("items"), false, false)...)
	}
	eachNested(p, path, func(nested *props, path *field.Path) {
		may := typedBelow && (nested == &p.AnyOf[0] || nested == &p.AnyOf[1])
		errs = append(errs, checkNested(nested, path, may, false)...)
	})
	return errs
}

// checkComplete checks that p describes every property and item that the schemas nested in v restrict. v is p itself or
// a schema that restricts p.
//
// A property that only anyOf mentions would be validated and then pruned, because pruning looks at p alone. vPath and
// pPath are the places of v and p, since an error names both: the place where the property is missing, and the place
// that needs it.
func checkComplete(v, p *props, vPath, pPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	eachNested(v, vPath, func(nested *props, path *field.Path) {
		errs = append(errs, checkMentioned(nested, p, path, pPath)...)
	})
	return errs
}

// checkMentioned checks that p describes every property and item that v restricts. v and p descend together. There is
// no case for additionalProperties, because v must not have it (structuralKeywords).
func checkMentioned(v, p *props, vPath, pPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	missing := func(pPath, vPath *field.Path) {
		errs = append(errs, field.Required(pPath, "because it is defined in "+vPath.String()))
	}
	for _, name := range slices.Sorted(maps.Keys(v.Properties)) {
		below := v.Properties[name]
		at, from := pPath.Child("properties").Key(name), vPath.Child("properties").Key(name)
		if own, ok := p.Properties[name]; ok {
			errs = append(errs, checkMentioned(&below, &own, from, at)...)
		} else {
			missing(at, from)
		}
	}
	if v.Items != nil && v.Items.Schema != nil {
		at, from := pPath.Child("items"), vPath.Child("items")
		if p.Items != nil && p.Items.Schema != nil {
			errs = append(errs, checkMentioned(v.Items.Schema, p.Items.Schema, from, at)...)
		} else {
			missing(at, from)
		}
	}
	return append(errs, checkComplete(v, p, vPath, pPath)...)
}
