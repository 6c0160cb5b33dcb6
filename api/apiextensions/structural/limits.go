package structural

import (
	"fmt"
	"regexp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// limits are the constraints on a value besides its type. nil pointers are absent constraints. It is a struct of its
// own because most nodes have none, and a schema has many nodes.
type limits struct {
	format                             string
	checkedFormat                      bool // values are validated against the format
	minimum, maximum, multipleOf       *float64
	exclusiveMinimum, exclusiveMaximum bool
	minLength, maxLength               *int64
	minItems, maxItems                 *int64
	minProperties, maxProperties       *int64
	uniqueItems                        bool
	pattern                            *regexp.Regexp
	enum                               []any
	// Looking a string up replaces a search of the whole enumeration.
	enumStrings map[string]bool // the strings in enum
	numeric     numeric
	required    []string
}

// numeric is the type that numbers and their bounds must have.
type numeric struct {
	kind, format                 string
	multipleOf, minimum, maximum bool // the bound has that type itself
}

// setNumeric sets the type that numbers must have, and which of the bounds have it themselves. It runs once per schema,
// so that bounds need no check for every value. Other formats than these four say nothing about numbers.
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
		return bound == nil || validate.IsValueValidAgainstRange(*bound, l.numeric.kind, l.numeric.format, "",
			"") == nil
	}
	l.numeric.multipleOf, l.numeric.minimum, l.numeric.maximum = fits(l.multipleOf), fits(l.minimum), fits(l.maximum)
}

// fitsAlways reports whether a number certainly has the type that it must have. If not, the library decides. int64 and
// float64 are what JSON decoding yields. An int64 fits every numeric type but the two smaller ones. A float64 may have
// a fraction, or be too large, for the others.
func (l *limits) fitsAlways(v any) bool {
	switch v.(type) {
	case int64:
		return l.numeric.format != "int32" && l.numeric.format != "float"
	case float64:
		return l.numeric.kind != "integer" && l.numeric.format != "float"
	}
	return false
}

// limits compiles the constraints of p; nil if there are none.
//
// An integer without other constraints still has limits, because a float64 such as 1.5 must be refused for it.
func (c *compiler) limits(p *apiextensionsv1.JSONSchemaProps) (*limits, error) {
	l := limits{
		minimum: p.Minimum, maximum: p.Maximum, multipleOf: p.MultipleOf,
		exclusiveMinimum: p.ExclusiveMinimum, exclusiveMaximum: p.ExclusiveMaximum,
		minLength: p.MinLength, maxLength: p.MaxLength, minItems: p.MinItems, maxItems: p.MaxItems,
		minProperties: p.MinProperties, maxProperties: p.MaxProperties, uniqueItems: p.UniqueItems,
		required: p.Required,
	}
	if knownFormat(p.Type, p.Format) {
		l.format, l.checkedFormat = p.Format, supportedFormat(p.Format)
	}
	if p.Pattern != "" {
		// A schema that is too large ends here, before the pattern is compiled for use.
		size, err := patternSize(p.Pattern)
		if err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
		if c.patterns += size; c.patterns > maxPatterns {
			return nil, fmt.Errorf("%w: its patterns have more than %d steps", errTooLarge, maxPatterns)
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
	if l.empty() && p.Type != "integer" { // its numbers are checked to be integers
		return nil, nil
	}
	l.setNumeric(p.Type)
	return &l, nil
}

// empty reports whether there are no constraints.
func (l *limits) empty() bool {
	return l.format == "" && l.pattern == nil && l.enum == nil && l.required == nil && !l.uniqueItems &&
		l.minimum == nil && l.maximum == nil && l.multipleOf == nil &&
		l.minLength == nil && l.maxLength == nil && l.minItems == nil && l.maxItems == nil &&
		l.minProperties == nil && l.maxProperties == nil
}
