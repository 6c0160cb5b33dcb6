package structural

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// props abbreviates the name of what a definition writes its schema in.
type props = apiextensionsv1.JSONSchemaProps

// Check tells why a schema is none that custom resources may have: what it says must be supported, structural and complete, and its
// defaults sound. A default that is sound for the schema s, which may be the root's, is left to rules to judge.
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

// CheckStructural tells why a schema is not structural. What has no compiled form is not looked at more closely.
func CheckStructural(p *props, path *field.Path) field.ErrorList {
	errs := checkSupported(p, path)
	if !isConvertible(p) {
		return errs
	}
	errs = append(errs, checkStructural(p, path, root)...)
	return append(errs, checkComplete(p, p, path, path)...)
}

// Walk calls visit with p and all schemas below it, and where they stand, in a fixed order.
func Walk(p *props, path *field.Path, visit func(p *props, path *field.Path)) {
	visit(p, path)
	each(p, path, func(p *props, path *field.Path) { Walk(p, path, visit) })
}

// each calls visit with the schemas directly below p and where they stand, in a fixed order.
func each(p *props, path *field.Path, visit func(p *props, path *field.Path)) {
	eachStructural(p, path, func(p *props, path *field.Path, _ level) { visit(p, path) })
	eachNested(p, path, visit)
}

// eachStructural visits those that say what a value is made of.
func eachStructural(p *props, path *field.Path, visit func(p *props, path *field.Path, as level)) {
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
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

// eachNested visits those that it must satisfy besides.
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

// isConvertible tells whether a schema is without what has no place in the compiled form.
func isConvertible(p *props) bool {
	ok := len(unsupported(p)) == 0 && (p.Items == nil || len(p.Items.JSONSchemas) == 0)
	each(p, nil, func(p *props, _ *field.Path) { ok = ok && isConvertible(p) })
	return ok
}

// unsupported are the fields of OpenAPI in p that are not supported.
func unsupported(p *props) []string {
	var out []string
	add := func(is bool, name string) {
		if is {
			out = append(out, name)
		}
	}
	add(p.ID != "", "id")
	add(p.Ref != nil, "$ref")
	add(p.AdditionalItems != nil, "additionalItems")
	add(len(p.PatternProperties) > 0, "patternProperties")
	add(len(p.Definitions) > 0, "definitions")
	add(len(p.Dependencies) > 0, "dependencies")
	return out
}

// checkSupported tells what of OpenAPI, or of its extensions, is used that is not supported, or not rightly.
func checkSupported(p *props, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range unsupported(p) {
		errs = append(errs, field.Forbidden(path.Child(name), name+" is not supported"))
	}
	if p.UniqueItems {
		errs = append(errs, field.Forbidden(path.Child("uniqueItems"), "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"))
	}
	if p.AdditionalProperties != nil && len(p.Properties) > 0 && (!p.AdditionalProperties.Allows || p.AdditionalProperties.Schema != nil) {
		errs = append(errs, field.Forbidden(path.Child("additionalProperties"), "additionalProperties and properties are mutual exclusive"))
	}
	if p.Items != nil && len(p.Items.JSONSchemas) > 0 {
		errs = append(errs, field.Forbidden(path.Child("items"), "items must be a schema object and not an array"))
	}
	if p.Type == "null" {
		errs = append(errs, field.Forbidden(path.Child("type"), "type cannot be set to null, use nullable as an alternative"))
	}
	switch p.Type {
	case "", "array", "boolean", "integer", "number", "object", "string":
	default:
		errs = append(errs, field.NotSupported(path.Child("type"), p.Type, []string{"array", "boolean", "integer", "number", "object", "string"}))
	}
	if p.XPreserveUnknownFields != nil && !*p.XPreserveUnknownFields {
		errs = append(errs, field.Invalid(path.Child("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined"))
	}
	if p.Pattern != "" {
		if _, err := regexp.Compile(p.Pattern); err != nil {
			errs = append(errs, field.Invalid(path.Child("pattern"), p.Pattern, fmt.Sprintf("must be a valid regular expression, but isn't: %v", err)))
		}
	}
	errs = append(errs, checkMapType(p, path)...)
	errs = append(errs, checkListType(p, path)...)
	each(p, path, func(p *props, path *field.Path) { errs = append(errs, checkSupported(p, path)...) })
	return errs
}

func checkMapType(p *props, path *field.Path) field.ErrorList {
	if p.XMapType == nil {
		return nil
	}
	errs := mustBe(p, path, "object", "must be object if x-kubernetes-map-type is specified")
	if t := *p.XMapType; t != "atomic" && t != "granular" {
		errs = append(errs, field.NotSupported(path.Child("x-kubernetes-map-type"), t, []string{"atomic", "granular"}))
	}
	return errs
}

// mustBe checks that p is of a type.
func mustBe(p *props, path *field.Path, kind, message string) field.ErrorList {
	switch p.Type {
	case kind:
		return nil
	case "":
		return field.ErrorList{field.Required(path.Child("type"), message)}
	}
	return field.ErrorList{field.Invalid(path.Child("type"), p.Type, message)}
}

// level is where a schema stands: at the root, in an object, in a list, or beside another (allOf and the like).
type level int

const (
	root level = iota
	fieldLevel
	itemLevel
)

// checkStructural tells why a schema is not structural: each value must have one type, which one place says.
func checkStructural(p *props, path *field.Path, as level) field.ErrorList {
	var errs field.ErrorList
	keeps := p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields
	switch {
	case as == root && p.Type == "":
		errs = append(errs, field.Required(path.Child("type"), "must not be empty at the root"))
	case as == root && p.Type != "object":
		errs = append(errs, field.Invalid(path.Child("type"), p.Type, "must be object at the root"))
	case p.XEmbeddedResource: // has its own word for it
	case p.Type == "" && !p.XIntOrString && p.XPreserveUnknownFields == nil && as == fieldLevel:
		errs = append(errs, field.Required(path.Child("type"), "must not be empty for specified object fields"))
	case p.Type == "" && !p.XIntOrString && p.XPreserveUnknownFields == nil && as == itemLevel:
		errs = append(errs, field.Required(path.Child("type"), "must not be empty for specified array items"))
	}
	if p.Type == "array" && (p.Items == nil || p.Items.Schema == nil && len(p.Items.JSONSchemas) == 0) { // which may be what is no schema, too
		errs = append(errs, field.Required(path.Child("items"), "must be specified"))
	}
	if as == root && p.AdditionalProperties != nil {
		errs = append(errs, field.Forbidden(path.Child("additionalProperties"), "must not be used at the root"))
	}
	if p.XEmbeddedResource {
		errs = append(errs, mustBe(p, path, "object", "must be object if x-kubernetes-embedded-resource is true")...)
		if !keeps && len(p.Properties) == 0 {
			errs = append(errs, field.Required(path.Child("properties"), "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"))
		}
		if p.AdditionalProperties != nil {
			errs = append(errs, field.Forbidden(path.Child("additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set"))
		}
	}
	if p.XIntOrString && keeps {
		errs = append(errs, field.Invalid(path.Child("x-kubernetes-preserve-unknown-fields"), true, "must be false if x-kubernetes-int-or-string is true"))
	}
	if p.XIntOrString && p.XEmbeddedResource {
		errs = append(errs, field.Invalid(path.Child("x-kubernetes-embedded-resource"), true, "must be false if x-kubernetes-int-or-string is true"))
	}
	if as == root || p.XEmbeddedResource {
		errs = append(errs, checkKind(p, path)...)
	}
	if as == root {
		errs = append(errs, checkMetadata(p, path)...)
	}
	eachStructural(p, path, func(p *props, path *field.Path, as level) { errs = append(errs, checkStructural(p, path, as)...) })
	types := choosesIntOrString(p.AnyOf)
	first := len(p.AllOf) > 0 && choosesIntOrString(p.AllOf[0].AnyOf)
	eachNested(p, path, func(nested *props, path *field.Path) {
		typed := types && slices.ContainsFunc([]*props{&p.AnyOf[0], &p.AnyOf[1]}, func(c *props) bool { return c == nested })
		errs = append(errs, checkNested(nested, path, typed, first && nested == &p.AllOf[0])...)
	})
	return errs
}

// choosesIntOrString tells whether the alternatives are the one pair that may name types: integer and string, in this order.
func choosesIntOrString(anyOf []props) bool {
	return len(anyOf) == 2 && reflect.DeepEqual(anyOf[0], props{Type: "integer"}) && reflect.DeepEqual(anyOf[1], props{Type: "string"})
}

// checkKind checks apiVersion and kind of an object.
func checkKind(p *props, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, is := range []struct{ name, kind string }{{"apiVersion", "string"}, {"kind", "string"}, {"metadata", "object"}} {
		if below, ok := p.Properties[is.name]; ok && below.Type != is.kind {
			errs = append(errs, field.Invalid(path.Child("properties").Key(is.name).Child("type"), below.Type, "must be "+is.kind))
		}
	}
	return errs
}

// checkMetadata checks what a schema says of its objects' own metadata: names alone.
func checkMetadata(p *props, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if meta, ok := p.Properties["metadata"]; ok {
		rest := meta
		rest.Type, rest.Default, rest.Properties = "", nil, nil
		for name := range meta.Properties {
			if name != "name" && name != "generateName" {
				rest.Description = name
			}
		}
		if !reflect.DeepEqual(rest, props{}) {
			errs = append(errs, field.Forbidden(path.Child("properties").Key("metadata"), "must not specify anything other than name and generateName, but metadata is implicitly specified"))
		}
	}
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		if below, ok := p.Properties[name]; ok {
			errs = append(errs, noDefaults(&below, path.Child("properties").Key(name), "must not be set in top-level "+name)...)
		}
	}
	eachNested(p, path, func(nested *props, path *field.Path) {
		if _, ok := nested.Properties["metadata"]; ok {
			errs = append(errs, field.Forbidden(path.Child("properties").Key("metadata"), "must not be specified in a nested context"))
		}
	})
	return errs
}

func noDefaults(p *props, path *field.Path, message string) field.ErrorList {
	var errs field.ErrorList
	if p.Default != nil {
		errs = append(errs, field.Forbidden(path.Child("default"), message))
	}
	eachStructural(p, path, func(p *props, path *field.Path, _ level) { errs = append(errs, noDefaults(p, path, message)...) })
	return errs
}

// checkNested tells what a schema says beside another that only the other may say. typed: it may name its type; typedBelow: the first
// two of its anyOf may.
func checkNested(p *props, path *field.Path, typed, typedBelow bool) field.ErrorList {
	var errs field.ErrorList
	forbid := func(is bool, name, must string) {
		if is {
			errs = append(errs, field.Forbidden(path.Child(name), "must be "+must+" to be structural"))
		}
	}
	forbid(p.Description != "", "description", "empty")
	forbid(p.Title != "", "title", "empty")
	forbid(p.Type != "" && !typed, "type", "empty")
	forbid(p.Default != nil, "default", "undefined")
	forbid(p.AdditionalProperties != nil, "additionalProperties", "undefined")
	forbid(p.Nullable, "nullable", "false")
	forbid(p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields, "x-kubernetes-preserve-unknown-fields", "false")
	forbid(p.XEmbeddedResource, "x-kubernetes-embedded-resource", "false")
	forbid(p.XIntOrString, "x-kubernetes-int-or-string", "false")
	forbid(len(p.XListMapKeys) > 0, "x-kubernetes-list-map-keys", "empty")
	forbid(p.XListType != nil, "x-kubernetes-list-type", "undefined")
	forbid(p.XMapType != nil, "x-kubernetes-map-type", "undefined")
	forbid(len(p.XValidations) > 0, "x-kubernetes-validations", "empty")
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		below := p.Properties[name]
		errs = append(errs, checkNested(&below, path.Child("properties").Key(name), false, false)...)
	}
	if p.Items != nil && p.Items.Schema != nil {
		errs = append(errs, checkNested(p.Items.Schema, path.Child("items"), false, false)...)
	}
	eachNested(p, path, func(nested *props, path *field.Path) {
		choice := typedBelow && (nested == &p.AnyOf[0] || nested == &p.AnyOf[1])
		errs = append(errs, checkNested(nested, path, choice, false)...)
	})
	return errs
}

// checkComplete checks that p has what v, which stands beside it at the root, speaks of.
func checkComplete(v, p *props, vPath, pPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	eachNested(v, vPath, func(nested *props, path *field.Path) {
		errs = append(errs, checkMentioned(nested, p, path, pPath)...)
	})
	return errs
}

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
