package structural

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/cel/common"
)

// Bounds of one schema. Requests have bounds elsewhere. These bound the memory and time of what is compiled.
const (
	// maxDepth is how deep schemas nest, including those of allOf, anyOf, oneOf and not. Recursion ends here, so a
	// hostile schema cannot exhaust the stack.
	maxDepth = 128
	// maxNodes is how many schemas one version has. Real definitions have some hundred to some thousand schemas.
	maxNodes = 50_000
	// maxPatterns is the number of steps of all compiled patterns together. Repetitions multiply: a{1000} has 1,000. A
	// step takes tens of bytes of memory.
	maxPatterns = 1 << 20
)

// errTooLarge is wrapped by the errors of Compile for schemas beyond the bounds.
var errTooLarge = errors.New("the schema is too large")

// Compile compiles a schema, which must be structural (Check). nil is the schema that accepts any object. An error says
// which bound the schema exceeds, or what is malformed.
//
// It runs on a request's goroutine, the first time that somebody reads or writes the version (customresource.Lazy), and
// for each create or change of the definition (checkDefaults). The result refers to parts of props, such as rules and
// bounds, which must therefore not change afterwards.
func Compile(props *apiextensionsv1.JSONSchemaProps) (*Schema, error) {
	if props == nil {
		return &Schema{keeps: true}, nil
	}
	c := compiler{}
	return c.schema(props, 0)
}

// compiler counts what it has made of one schema.
type compiler struct {
	nodes    int
	patterns int // steps
}

// schema compiles p, which is depth levels below the root, and all that is below it. Children come before the limits
// and the summary: summarize reads what is below.
func (c *compiler) schema(p *apiextensionsv1.JSONSchemaProps, depth int) (*Schema, error) {
	if c.nodes++; c.nodes > maxNodes {
		return nil, fmt.Errorf("%w: more than %d schemas", errTooLarge, maxNodes)
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: more than %d levels", errTooLarge, maxDepth)
	}
	s := &Schema{
		kind: p.Type, nullable: p.Nullable, intOrString: p.XIntOrString, embedded: p.XEmbeddedResource,
		keeps: preserves(p), listType: deref(p.XListType), mapType: deref(p.XMapType), listMapKeys: p.XListMapKeys,
		rules: p.XValidations,
	}
	for i := range p.XValidations {
		// The rules point into props, which saves copies of their texts.
		s.celRules = append(s.celRules, rule{&p.XValidations[i]})
	}
	if p.Default != nil && len(p.Default.Raw) > 0 {
		v, err := decode(p.Default.Raw)
		if err != nil {
			return nil, fmt.Errorf("default: %w", err)
		}
		s.fallback, s.hasFallback = v, v != nil // a default of null is none
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

// children compiles the schemas below p.
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
		// Sorted once here, so that every walk reports errors in a fixed order.
		for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
			below := p.Properties[name]
			m, err := c.schema(&below, depth+1)
			if err != nil {
				return err
			}
			s.members = append(s.members, member{name, m})
			s.properties[name] = m.CEL()
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

// decode decodes a JSON value like objects are decoded: integers are int64. Objects come from the same decoder, so a
// default or an enumerated value can be compared with theirs without conversion.
func decode(raw []byte) (any, error) {
	var v any
	if len(raw) == 0 { // null
		return nil, nil
	}
	err := utiljson.Unmarshal(raw, &v)
	return v, err
}

// deref returns what p points to, the zero value for nil.
func deref[T any](p *T) T {
	var v T
	if p != nil {
		v = *p
	}
	return v
}
