package structural

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/cel/common"
)

// celSchema is a Schema as CEL's library wants it. It is the same memory: a conversion costs nothing.
//
// CEL's library asks for these methods while it declares the types of variables, estimates the cost of rules, and
// correlates list items between an old and a new object. Answers must be cheap: it asks again for every object.
type celSchema Schema

var _ common.Schema = (*celSchema)(nil)

// CEL returns s for CEL's library, which derives the types of values from it, and correlates values with old ones.
func (s *Schema) CEL() common.Schema { return (*celSchema)(s) }

// Type is the OpenAPI type, "" for any.
func (s *celSchema) Type() string { return s.kind }

// Format is the OpenAPI format, if it is one that values of the type can have. The compiled form has no others
// (knownFormat).
func (s *celSchema) Format() string { return s.bounds().format }

// Items is the schema of a list's items; nil for none. A nil *Schema in the interface would not be equal to nil, and
// the library checks for nil (orNil).
func (s *celSchema) Items() common.Schema { return orNil(s.items) }

// Properties are the schemas of an object's fields.
func (s *celSchema) Properties() map[string]common.Schema { return s.properties }

// AdditionalProperties is what a map holds; nil for what is no map. additionalProperties: true gives a map whose values
// have no schema (values.Schema).
func (s *celSchema) AdditionalProperties() common.SchemaOrBool {
	if !s.additionalAllowed {
		return nil
	}
	return values{s}
}

// values are those of a map.
type values struct{ s *celSchema }

func (v values) Schema() common.Schema { return orNil(v.s.additional) }
func (v values) Allows() bool          { return v.s.additionalAllowed }

// Default is the default.
func (s *celSchema) Default() any { return s.fallback }

// Pattern is the regular expression of strings.
func (s *celSchema) Pattern() string {
	if p := s.bounds().pattern; p != nil {
		return p.String()
	}
	return ""
}

// The bounds of values, as in OpenAPI.
func (s *celSchema) Minimum() *float64        { return s.bounds().minimum }
func (s *celSchema) IsExclusiveMinimum() bool { return s.bounds().exclusiveMinimum }
func (s *celSchema) Maximum() *float64        { return s.bounds().maximum }
func (s *celSchema) IsExclusiveMaximum() bool { return s.bounds().exclusiveMaximum }
func (s *celSchema) MultipleOf() *float64     { return s.bounds().multipleOf }
func (s *celSchema) MinItems() *int64         { return s.bounds().minItems }
func (s *celSchema) MaxItems() *int64         { return s.bounds().maxItems }
func (s *celSchema) MinLength() *int64        { return s.bounds().minLength }
func (s *celSchema) MaxLength() *int64        { return s.bounds().maxLength }
func (s *celSchema) MinProperties() *int64    { return s.bounds().minProperties }
func (s *celSchema) MaxProperties() *int64    { return s.bounds().maxProperties }
func (s *celSchema) Required() []string       { return s.bounds().required }
func (s *celSchema) Enum() []any              { return s.bounds().enum }
func (s *celSchema) Nullable() bool           { return s.nullable }
func (s *celSchema) UniqueItems() bool        { return s.bounds().uniqueItems }

// AllOf, OneOf, AnyOf and Not are the schemas that a value must satisfy besides.
func (s *celSchema) AllOf() []common.Schema { return all(s.allOf) }
func (s *celSchema) OneOf() []common.Schema { return all(s.oneOf) }
func (s *celSchema) AnyOf() []common.Schema { return all(s.anyOf) }
func (s *celSchema) Not() common.Schema     { return orNil(s.not) }

// The x-kubernetes- extensions.
func (s *celSchema) IsXIntOrString() bool           { return s.intOrString }
func (s *celSchema) IsXEmbeddedResource() bool      { return s.embedded }
func (s *celSchema) IsXPreserveUnknownFields() bool { return s.keeps }
func (s *celSchema) XListType() string              { return s.listType }
func (s *celSchema) XListMapKeys() []string         { return s.listMapKeys }
func (s *celSchema) XMapType() string               { return s.mapType }

// XValidations are the CEL rules. Schema.Rules has all of their fields.
func (s *celSchema) XValidations() []common.ValidationRule { return s.celRules }

// WithTypeAndObjectMeta returns s with the fields that rules can read in every object: apiVersion, kind, and the names
// in metadata.
//
// Upstream documents that these fields are always accessible at the root and in embedded resources, even if the schema
// does not mention them. s itself must not change, because other goroutines read it, so the result is a copy unless s
// already has the fields.
func (s *celSchema) WithTypeAndObjectMeta() common.Schema {
	text := &celSchema{kind: "string"}
	meta, ok := s.properties["metadata"].(*celSchema)
	if ok && s.isText("kind") && s.isText("apiVersion") && meta.isText("name") && meta.isText("generateName") {
		return s
	}
	out := *s
	out.properties = make(map[string]common.Schema, len(s.properties)+3)
	for k, v := range s.properties {
		out.properties[k] = v
	}
	out.properties["kind"], out.properties["apiVersion"] = text, text
	name := &celSchema{kind: "string", limits: &limits{maxLength: new(int64(validation.DNS1123SubdomainMaxLength))}}
	names := map[string]common.Schema{"name": name, "generateName": name}
	out.properties["metadata"] = &celSchema{kind: "object", properties: names}
	return &out
}

func (s *celSchema) isText(name string) bool {
	p, ok := s.properties[name].(*celSchema)
	return ok && p.kind == "string"
}

// rule is a rule as CEL's library wants it.
type rule struct {
	r *apiextensionsv1.ValidationRule
}

func (r rule) Rule() string              { return r.r.Rule }
func (r rule) Message() string           { return r.r.Message }
func (r rule) MessageExpression() string { return r.r.MessageExpression }
func (r rule) FieldPath() string         { return r.r.FieldPath }

// bounds returns the limits, never nil. Most nodes have no limits, so the empty value is made only when somebody asks.
func (s *celSchema) bounds() *limits {
	if s.limits == nil {
		return &limits{}
	}
	return s.limits
}

// orNil returns s for CEL's library. A nil Schema is a nil interface.
func orNil(s *Schema) common.Schema {
	if s == nil {
		return nil
	}
	return s.CEL()
}

func all(in []*Schema) []common.Schema {
	out := make([]common.Schema, len(in))
	for i, s := range in {
		out[i] = s.CEL()
	}
	return out
}
