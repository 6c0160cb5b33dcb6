package structural

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/cel/common"
)

// Schema is one node of a compiled schema. It does not change after Compile, and serves any number of goroutines.
//
// All fields are private, so that only Compile can make one, and pointers below it may be shared. Memory matters: each
// served version in use has a tree of these.
type Schema struct {
	// kind is the OpenAPI type: object, array, string, integer, number or boolean; "" for any.
	kind                            string
	nullable, intOrString, embedded bool
	// keeps is x-kubernetes-preserve-unknown-fields.
	keeps             bool
	listType, mapType string
	listMapKeys       []string

	// members are the properties by name. properties has the same nodes, as CEL's library wants them. members gives
	// walks a fixed order, and properties gives them a lookup by name.
	members    []member
	properties map[string]common.Schema
	items      *Schema
	additional *Schema
	// additionalAllowed: additionalProperties is true or a schema.
	additionalAllowed bool

	// fallback is the default, if hasFallback. Hand out copies only (defaultValue): an object that shares it would
	// change the schema.
	fallback    any
	hasFallback bool

	// limits is nil if the type is the only constraint.
	limits              *limits
	allOf, anyOf, oneOf []*Schema
	not                 *Schema
	// rules are the CEL rules. celRules are the same, as CEL's library wants them.
	rules    apiextensionsv1.ValidationRules
	celRules []common.ValidationRule

	below summary
}

// member is a property of an object.
type member struct {
	name   string
	schema *Schema
}

// summary says what there is below a node, so that walks can leave out what does not concern them. It is why the cost
// of a walk depends on what it looks for and not on the size of the schema: most schemas have no embedded resources,
// and few have defaults everywhere.
type summary struct {
	defaults bool
	embedded bool
	unique   bool // lists that must not have duplicates
	// It is true for nearly every schema with properties.
	nulls bool // values that may not be null and have no default
	rules bool
}

// summarize sets s.below. The nodes below s are complete.
func (s *Schema) summarize() {
	b := &s.below
	add := func(c *Schema) {
		if c == nil {
			return
		}
		b.defaults = b.defaults || c.hasFallback || c.below.defaults
		b.embedded = b.embedded || c.embedded || c.below.embedded
		b.unique = b.unique || c.unique() || c.below.unique
		b.nulls = b.nulls || !c.nullable && !c.hasFallback || c.below.nulls
		b.rules = b.rules || c.HasRules()
	}
	for _, m := range s.members {
		add(m.schema)
	}
	add(s.items)
	add(s.additional)
	// Schemas that only restrict a value can have nothing but rules.
	for _, nested := range [][]*Schema{s.allOf, s.anyOf, s.oneOf, {s.not}} {
		for _, n := range nested {
			b.rules = b.rules || n != nil && n.HasRules()
		}
	}
}

// unique reports whether a list must not have duplicates.
func (s *Schema) unique() bool { return s.listType == "set" || s.listType == "map" }

// defaultValue returns a copy of the default; nil for none.
func (s *Schema) defaultValue() any { return runtime.DeepCopyJSONValue(s.fallback) }

// Type returns the OpenAPI type, "" for any.
func (s *Schema) Type() string { return s.kind }

// Embedded reports whether values are resources of their own (x-kubernetes-embedded-resource).
func (s *Schema) Embedded() bool { return s.embedded }

// ListType returns x-kubernetes-list-type, "" if it is not set.
func (s *Schema) ListType() string { return s.listType }

// Property returns the schema of an object's field; nil for none.
func (s *Schema) Property(name string) *Schema {
	p, _ := s.properties[name].(*celSchema)
	return (*Schema)(p)
}

// EachProperty visits the properties in the order of their names.
func (s *Schema) EachProperty(visit func(name string, p *Schema)) {
	for _, m := range s.members {
		visit(m.name, m.schema)
	}
}

// Items returns the schema of a list's items; nil for none.
func (s *Schema) Items() *Schema { return s.items }

// AdditionalProperties returns the schema of a map's values; nil for none.
func (s *Schema) AdditionalProperties() *Schema { return s.additional }

// MaxItems returns the largest length of lists; nil for any.
func (s *Schema) MaxItems() *int64 { return s.CEL().MaxItems() }

// MaxProperties returns the largest number of an object's fields; nil for any.
func (s *Schema) MaxProperties() *int64 { return s.CEL().MaxProperties() }

// Rules returns the CEL rules for the value itself.
func (s *Schema) Rules() apiextensionsv1.ValidationRules { return s.rules }

// HasRules reports whether there is a CEL rule for the value or for anything in it.
func (s *Schema) HasRules() bool { return len(s.rules) > 0 || s.below.rules }
