// Package structural is the compiled form of the schema that a version of a CustomResourceDefinition gives its objects: what they
// are pruned, defaulted and validated by. It is made when somebody needs it and thrown away afterwards; what is stored is the
// CustomResourceDefinition.
package structural

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// Bounds of one schema. What a request can carry is bounded elsewhere; these keep what is made of it small.
const (
	// MaxDepth is how deep schemas nest, those of allOf, anyOf, oneOf and not counted.
	MaxDepth = 128
	// MaxNodes is how many schemas one version has.
	MaxNodes = 50_000
	// maxPatterns is the length of all patterns of a version together, with their repetitions written out.
	maxPatterns = 1 << 20
)

// Schema is one node of a compiled schema. It does not change once it is made, and serves any number of goroutines.
// It is a common.Schema, by which CEL knows the types of values.
type Schema struct {
	kind                                    string // "object", "array", "string", "integer", "number", "boolean"; "" for any
	nullable, intOrString, embedded, keeps  bool   // keeps: x-kubernetes-preserve-unknown-fields
	listType, mapType                       string
	listMapKeys                             []string
	members                                 []member                 // of properties, by name
	properties                              map[string]common.Schema // the same
	items, additional                       *Schema
	additionalAllowed                       bool // additionalProperties is true or a schema
	fallback                                any  // the default
	hasFallback                             bool
	limits                                  *limits
	rules                                   []common.ValidationRule
	declared                                apiextensionsv1.ValidationRules
	allOf, anyOf, oneOf                     []*Schema
	not                                     *Schema
	defaultsBelow, embedsBelow, uniqueBelow bool
	nullsBelow                              bool // some property below may not be null and has no default
	rulesBelow                              bool
}

// member is one of the properties of an object.
type member struct {
	name   string
	schema *Schema
}

// limits are the constraints on a value besides its type.
type limits struct {
	format                             string
	checkedFormat                      bool // one that values are checked by
	minimum, maximum, multipleOf       *float64
	exclusiveMinimum, exclusiveMaximum bool
	minLength, maxLength               *int64
	minItems, maxItems                 *int64
	minProperties, maxProperties       *int64
	uniqueItems                        bool
	pattern                            *regexp.Regexp
	enum                               []any
	enumStrings                        map[string]bool // those of enum that are strings
	numeric                            numeric
	required                           []string
}

// numeric is what the bounds of numbers are held to.
type numeric struct {
	kind, format                 string
	multipleOf, minimum, maximum bool // whether the bounds themselves are of that type
}

// setNumeric finds the type that numbers are held to, and whether the bounds are of it.
func (l *limits) setNumeric(kind string) {
	switch f := l.format; {
	case kind == "integer":
		l.numeric.kind = kind
		if f == "int32" || f == "int64" {
			l.numeric.format = f
		}
	case kind == "number":
		l.numeric.kind = kind
		if f == "float" || f == "double" {
			l.numeric.format = f
		}
	}
	fits := func(bound *float64) bool {
		return bound == nil || validate.IsValueValidAgainstRange(*bound, l.numeric.kind, l.numeric.format, "", "") == nil
	}
	l.numeric.multipleOf, l.numeric.minimum, l.numeric.maximum = fits(l.multipleOf), fits(l.minimum), fits(l.maximum)
}

// fitsAlways tells whether a number is of the type that it is held to, without a closer look.
func (l *limits) fitsAlways(v any) bool {
	switch v.(type) {
	case int64:
		return l.numeric.format != "int32" && l.numeric.format != "float"
	case float64:
		return l.numeric.kind != "integer" && l.numeric.format != "float"
	}
	return false
}

// ErrTooLarge is wrapped by the errors of Compile for schemas beyond the bounds.
var ErrTooLarge = errors.New("the schema is too large")

// Compile makes the compiled form of a schema, which must be structural (Check). Its errors wrap ErrTooLarge or tell what is not
// well formed.
func Compile(props *apiextensionsv1.JSONSchemaProps) (*Schema, error) {
	c := compiler{formats: strfmt.Default}
	if props == nil {
		return &Schema{keeps: true}, nil
	}
	return c.schema(props, 0)
}

// compiler counts what it has made of one schema.
type compiler struct {
	formats  strfmt.Registry
	nodes    int
	patterns int
}

func (c *compiler) schema(p *apiextensionsv1.JSONSchemaProps, depth int) (*Schema, error) {
	if c.nodes++; c.nodes > MaxNodes {
		return nil, fmt.Errorf("%w: more than %d schemas", ErrTooLarge, MaxNodes)
	}
	if depth > MaxDepth {
		return nil, fmt.Errorf("%w: more than %d levels", ErrTooLarge, MaxDepth)
	}
	s := &Schema{
		kind: p.Type, nullable: p.Nullable, intOrString: p.XIntOrString, embedded: p.XEmbeddedResource,
		keeps:    p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields,
		listType: deref(p.XListType), mapType: deref(p.XMapType), listMapKeys: p.XListMapKeys,
		declared: p.XValidations,
	}
	for i := range p.XValidations {
		s.rules = append(s.rules, rule{&p.XValidations[i]})
	}
	if p.Default != nil && len(p.Default.Raw) > 0 {
		v, err := decode(p.Default.Raw)
		if err != nil {
			return nil, fmt.Errorf("default: %w", err)
		}
		s.fallback, s.hasFallback = v, v != nil
	}
	if err := c.children(s, p, depth); err != nil {
		return nil, err
	}
	var err error
	if s.limits, err = c.limits(p); err != nil {
		return nil, err
	}
	s.summarize()
	return s, nil
}

// children compiles what stands below p.
func (c *compiler) children(s *Schema, p *apiextensionsv1.JSONSchemaProps, depth int) (err error) {
	one := func(p *apiextensionsv1.JSONSchemaProps) (*Schema, error) {
		if p == nil {
			return nil, nil
		}
		return c.schema(p, depth+1)
	}
	if len(p.Properties) > 0 {
		s.properties = make(map[string]common.Schema, len(p.Properties))
		s.members = make([]member, 0, len(p.Properties))
		for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
			below := p.Properties[name]
			m, err := c.schema(&below, depth+1)
			if err != nil {
				return err
			}
			s.members = append(s.members, member{name, m})
			s.properties[name] = m
		}
	}
	if p.Items != nil {
		if s.items, err = one(p.Items.Schema); err != nil {
			return err
		}
	}
	if a := p.AdditionalProperties; a != nil {
		if s.additional, err = one(a.Schema); err != nil {
			return err
		}
		s.additionalAllowed = a.Allows || a.Schema != nil
	}
	for _, l := range []struct {
		from []apiextensionsv1.JSONSchemaProps
		to   *[]*Schema
	}{{p.AllOf, &s.allOf}, {p.AnyOf, &s.anyOf}, {p.OneOf, &s.oneOf}} {
		for i := range l.from {
			below, err := c.schema(&l.from[i], depth+1)
			if err != nil {
				return err
			}
			*l.to = append(*l.to, below)
		}
	}
	s.not, err = one(p.Not)
	return err
}

// summarize notes what stands below, so that walks leave out what does not concern them.
func (s *Schema) summarize() {
	below := func(c *Schema) {
		if c == nil {
			return
		}
		s.defaultsBelow = s.defaultsBelow || c.hasFallback || c.defaultsBelow
		s.embedsBelow = s.embedsBelow || c.embedded || c.embedsBelow
		s.uniqueBelow = s.uniqueBelow || c.unique() || c.uniqueBelow
		s.nullsBelow = s.nullsBelow || !c.nullable && !c.hasFallback || c.nullsBelow
		s.rulesBelow = s.rulesBelow || len(c.rules) > 0 || c.rulesBelow
	}
	for _, m := range s.members {
		below(m.schema)
	}
	below(s.items)
	below(s.additional)
	for _, nested := range [][]*Schema{s.allOf, s.anyOf, s.oneOf, {s.not}} {
		for _, n := range nested {
			if n != nil {
				s.rulesBelow = s.rulesBelow || len(n.rules) > 0 || n.rulesBelow
			}
		}
	}
}

// unique tells whether a list must not hold the same twice.
func (s *Schema) unique() bool { return s.listType == "set" || s.listType == "map" }

func (c *compiler) limits(p *apiextensionsv1.JSONSchemaProps) (*limits, error) {
	l := limits{
		minimum: p.Minimum, maximum: p.Maximum, multipleOf: p.MultipleOf,
		exclusiveMinimum: p.ExclusiveMinimum, exclusiveMaximum: p.ExclusiveMaximum,
		minLength: p.MinLength, maxLength: p.MaxLength, minItems: p.MinItems, maxItems: p.MaxItems,
		minProperties: p.MinProperties, maxProperties: p.MaxProperties, uniqueItems: p.UniqueItems, required: p.Required,
	}
	if knownFormat(p.Type, p.Format) {
		l.format, l.checkedFormat = p.Format, SupportedFormat(p.Format)
	}
	if p.Pattern != "" {
		size, err := patternSize(p.Pattern)
		if err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
		if c.patterns += size; c.patterns > maxPatterns {
			return nil, fmt.Errorf("%w: its patterns have more than %d steps", ErrTooLarge, maxPatterns)
		}
		if l.pattern, err = regexp.Compile(p.Pattern); err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
	}
	for i := range p.Enum {
		v, err := decode(p.Enum[i].Raw)
		if err != nil {
			return nil, fmt.Errorf("enum: %w", err)
		}
		l.enum = append(l.enum, v)
		if text, ok := v.(string); ok {
			if l.enumStrings == nil {
				l.enumStrings = map[string]bool{}
			}
			l.enumStrings[text] = true
		}
	}
	if l.empty() && p.Type != "integer" { // whose numbers are checked to be integers
		return nil, nil
	}
	l.setNumeric(p.Type)
	return &l, nil
}

func (l *limits) empty() bool {
	return l.format == "" && l.minimum == nil && l.maximum == nil && l.multipleOf == nil && l.minLength == nil && l.maxLength == nil &&
		l.minItems == nil && l.maxItems == nil && l.minProperties == nil && l.maxProperties == nil && !l.uniqueItems &&
		l.pattern == nil && l.enum == nil && l.required == nil
}

// decode reads a JSON value as objects are read: integers are int64.
func decode(raw []byte) (any, error) {
	var v any
	if len(raw) == 0 { // null
		return nil, nil
	}
	err := utiljson.Unmarshal(raw, &v)
	return v, err
}

// defaultValue is the value that stands where none is, a copy; nil for none.
func (s *Schema) defaultValue() any { return runtime.DeepCopyJSONValue(s.fallback) }

func deref[T any](p *T) T {
	var v T
	if p != nil {
		v = *p
	}
	return v
}

// Property is the schema of an object's field by name; nil for none.
func (s *Schema) Property(name string) *Schema {
	p, _ := s.properties[name].(*Schema)
	return p
}
