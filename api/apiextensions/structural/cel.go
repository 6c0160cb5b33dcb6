package structural

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/cel/common"
)

// What CEL asks of a schema: common.Schema.
var _ common.Schema = (*Schema)(nil)

// Type is the OpenAPI type, "" for any.
func (s *Schema) Type() string { return s.kind }

// Format is the OpenAPI format.
func (s *Schema) Format() string { return s.bounds().format }

// Items is the schema of a list's items; nil for none.
func (s *Schema) Items() common.Schema { return orNil(s.items) }

// Properties are the schemas of an object's fields.
func (s *Schema) Properties() map[string]common.Schema { return s.properties }

// AdditionalProperties is what a map holds; nil for what is no map.
func (s *Schema) AdditionalProperties() common.SchemaOrBool {
	if !s.additionalAllowed {
		return nil
	}
	return values{s}
}

// values are those of a map.
type values struct{ s *Schema }

func (v values) Schema() common.Schema { return orNil(v.s.additional) }
func (v values) Allows() bool          { return v.s.additionalAllowed }

// Default is the default.
func (s *Schema) Default() any { return s.fallback }

// Pattern is the regular expression of strings.
func (s *Schema) Pattern() string {
	if p := s.bounds().pattern; p != nil {
		return p.String()
	}
	return ""
}

// The bounds of values, as in OpenAPI.
func (s *Schema) Minimum() *float64        { return s.bounds().minimum }
func (s *Schema) IsExclusiveMinimum() bool { return s.bounds().exclusiveMinimum }
func (s *Schema) Maximum() *float64        { return s.bounds().maximum }
func (s *Schema) IsExclusiveMaximum() bool { return s.bounds().exclusiveMaximum }
func (s *Schema) MultipleOf() *float64     { return s.bounds().multipleOf }
func (s *Schema) MinItems() *int64         { return s.bounds().minItems }
func (s *Schema) MaxItems() *int64         { return s.bounds().maxItems }
func (s *Schema) MinLength() *int64        { return s.bounds().minLength }
func (s *Schema) MaxLength() *int64        { return s.bounds().maxLength }
func (s *Schema) MinProperties() *int64    { return s.bounds().minProperties }
func (s *Schema) MaxProperties() *int64    { return s.bounds().maxProperties }
func (s *Schema) Required() []string       { return s.bounds().required }
func (s *Schema) Enum() []any              { return s.bounds().enum }
func (s *Schema) Nullable() bool           { return s.nullable }
func (s *Schema) UniqueItems() bool        { return s.bounds().uniqueItems }

// AllOf, OneOf, AnyOf and Not are the schemas that a value must satisfy besides.
func (s *Schema) AllOf() []common.Schema { return all(s.allOf) }
func (s *Schema) OneOf() []common.Schema { return all(s.oneOf) }
func (s *Schema) AnyOf() []common.Schema { return all(s.anyOf) }
func (s *Schema) Not() common.Schema     { return orNil(s.not) }

// The x-kubernetes- extensions.
func (s *Schema) IsXIntOrString() bool           { return s.intOrString }
func (s *Schema) IsXEmbeddedResource() bool      { return s.embedded }
func (s *Schema) IsXPreserveUnknownFields() bool { return s.keeps }
func (s *Schema) XListType() string              { return s.listType }
func (s *Schema) XListMapKeys() []string         { return s.listMapKeys }
func (s *Schema) XMapType() string               { return s.mapType }

// XValidations are the CEL rules as CEL's library knows them; Rules has all of them.
func (s *Schema) XValidations() []common.ValidationRule { return s.rules }

// Rules are the CEL rules of the value itself.
func (s *Schema) Rules() apiextensionsv1.ValidationRules { return s.declared }

// Entry is the schema of a list's items, and Values that of a map's values; nil for none.
func (s *Schema) Entry() *Schema  { return s.items }
func (s *Schema) Values() *Schema { return s.additional }

// EachProperty visits the properties by name.
func (s *Schema) EachProperty(visit func(name string, p *Schema)) {
	for _, m := range s.members {
		visit(m.name, m.schema)
	}
}

// HasRules tells whether there is a rule for the value or for anything in it.
func (s *Schema) HasRules() bool { return len(s.rules) > 0 || s.rulesBelow }

// WithTypeAndObjectMeta adds what rules can always read of an object: apiVersion, kind and the name.
func (s *Schema) WithTypeAndObjectMeta() common.Schema {
	text := &Schema{kind: "string"}
	if meta, ok := s.properties["metadata"].(*Schema); ok && s.isText("kind") && s.isText("apiVersion") && meta.isText("name") && meta.isText("generateName") {
		return s
	}
	out := *s
	out.properties = make(map[string]common.Schema, len(s.properties)+3)
	for k, v := range s.properties {
		out.properties[k] = v
	}
	out.properties["kind"], out.properties["apiVersion"] = text, text
	out.properties["metadata"] = &Schema{kind: "object", properties: map[string]common.Schema{"name": text, "generateName": text}}
	return &out
}

func (s *Schema) isText(name string) bool {
	p, ok := s.properties[name].(*Schema)
	return ok && p.kind == "string"
}

// rule is a rule as CEL's library knows it.
type rule struct {
	r *apiextensionsv1.ValidationRule
}

func (r rule) Rule() string              { return r.r.Rule }
func (r rule) Message() string           { return r.r.Message }
func (r rule) MessageExpression() string { return r.r.MessageExpression }
func (r rule) FieldPath() string         { return r.r.FieldPath }

// bounds are the limits, never nil.
func (s *Schema) bounds() *limits {
	if s.limits == nil {
		return &limits{}
	}
	return s.limits
}

func orNil(s *Schema) common.Schema {
	if s == nil {
		return nil
	}
	return s
}

func all(in []*Schema) []common.Schema {
	out := make([]common.Schema, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}
