package structural

import (
	"encoding/json"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/go-openapi/swag/conv"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// kindOf returns the OpenAPI type and format of a decoded JSON value.
//
// The decoder makes int64 of numbers without a fraction or an exponent that fit, and float64 of all others.
func kindOf(v any) (kind, format string) {
	switch v.(type) {
	case string:
		return "string", ""
	case bool:
		return "boolean", ""
	case int64:
		return "integer", "int64"
	case float64:
		return "number", "float64"
	case []any:
		return "array", ""
	case map[string]any:
		return "object", ""
	}
	return "", ""
}

// types returns the OpenAPI types that values may have, as messages name them; "" for any.
func (c *validator) types(s *Schema) string {
	if s.intOrString && s.kind == "" && !c.anyIntOrString {
		return "integer,string"
	}
	return s.kind
}

// kind checks the type of v. The cases, and the words, are the library's: a number or object of another type is
// reported by its format if the schema has one, and strings and lists pass if the schema has a format of strings. text
// checks the formats of strings.
func (c *validator) kind(s *Schema, v any, at *valuePath, r *result) {
	r.matches++
	kind, format := kindOf(v)
	want := ""
	if s.limits != nil {
		want = s.limits.format
	}
	integer := s.kind == "integer" || s.kind == "" && s.intOrString
	f, isFloat := v.(float64)
	fits := kind == s.kind || integer && kind == "integer" || s.kind == "" && s.intOrString && kind == "string" ||
		isFloat && integer && conv.IsFloat64AJSONInteger(f) || kind == "integer" && s.kind == "number"
	stringOrList := kind == "string" || kind == "array"
	switch numeric := s.kind == "number" || integer; {
	case !stringOrList && want != "" && !fits && format != want:
		r.matches--
		c.fail(r, func() *field.Error { return c.wrongType(at, want, format) })
	case !numeric && want != "" && stringOrList:
	case !fits:
		r.matches--
		c.fail(r, func() *field.Error { return c.wrongType(at, c.types(s), kind) })
	}
}

func (c *validator) wrongType(at *valuePath, want, got string) *field.Error {
	return field.TypeInvalid(c.at(at), got, errors.InvalidType(c.name(at), "body", want, got).Error())
}

// enum checks that v is one of the values that s lists.
//
// Each comparison counts as a step. A long enumeration in nested alternatives would otherwise be work that nobody
// counts.
func (c *validator) enum(s *Schema, v any, at *valuePath, r *result) {
	if s.limits == nil || len(s.limits.enum) == 0 {
		return
	}
	if text, ok := v.(string); ok && s.limits.enumStrings[text] {
		return // nearly all enumerations are of strings
	}
	c.steps += len(s.limits.enum)
	for _, e := range s.limits.enum {
		if same(v, e) {
			return
		}
	}
	c.fail(r, func() *field.Error {
		valid := make([]string, len(s.limits.enum))
		for i, e := range s.limits.enum {
			valid[i] = enumText(e)
		}
		return field.NotSupported(c.at(at), v, valid)
	})
}

// enumText returns a value as messages list it.
func enumText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// same reports whether v is the value want of an enumeration. 1 and 1.0 are the same. Nothing is the same as null.
//
// The library compares numbers across these types. That null never matches is the library's behaviour as well; a
// nullable enumeration therefore cannot be satisfied by null.
func same(v, want any) bool {
	switch w := want.(type) {
	case nil:
		return false
	case int64:
		if f, ok := v.(float64); ok {
			return int64(f) == w
		}
	case float64:
		if i, ok := v.(int64); ok {
			return float64(i) == w
		}
	}
	return reflect.DeepEqual(v, want)
}

// text checks a string: its length, else its pattern, and its format.
//
// Lengths are in Unicode code points, as in JSON Schema. Counting them takes time in proportion to the string, so it is
// done only for schemas with such a bound.
func (c *validator) text(s *Schema, v string, at *valuePath, r *result) {
	r.matches++
	l := s.limits
	if l == nil {
		return
	}
	n := int64(-1)
	if l.maxLength != nil || l.minLength != nil {
		n = int64(utf8.RuneCountInString(v))
	}
	switch {
	case l.maxLength != nil && n > *l.maxLength:
		c.fail(r, func() *field.Error { return field.TooLong(c.at(at), v, int(*l.maxLength)) })
	case l.minLength != nil && n < *l.minLength:
		c.fail(r, func() *field.Error { return c.invalid(at, v, errors.TooShort(c.name(at), "body", *l.minLength, v)) })
	case l.pattern != nil && !l.pattern.MatchString(v):
		c.fail(r, func() *field.Error {
			return c.invalid(at, v, errors.FailedPattern(c.name(at), "body", l.pattern.String(), v))
		})
	}
	if l.checkedFormat {
		if !strfmt.Default.Validates(l.format, v) {
			c.fail(r, func() *field.Error {
				return field.TypeInvalid(c.at(at), v, errors.InvalidType(c.name(at), "body", l.format, v).Error())
			})
		}
		r.matches++
	}
}

func (c *validator) invalid(at *valuePath, v any, err *errors.Validation) *field.Error {
	return field.Invalid(c.at(at), v, err.Error())
}

// number checks a number. f is v as a float64.
//
// The three bounds are independent, so a number may violate several. For each, bound chooses between a comparison in
// the schema's type (native) and one as float64 (general).
func (c *validator) number(s *Schema, f float64, v any, at *valuePath, r *result) {
	r.matches += 2
	l := s.limits
	if l == nil {
		return
	}
	name := c.name(at)
	if !l.fitsAlways(v) {
		if err := validate.IsValueValidAgainstRange(v, l.numeric.kind, l.numeric.format, "Checked", name); err != nil {
			// The path of this error is the object's, as in upstream; its text names the value.
			c.fail(r, func() *field.Error { return field.Invalid(c.path, "", err.Error()) })
		}
	}
	if m := l.multipleOf; m != nil {
		c.bound(&l.numeric, l.numeric.multipleOf, "MultipleOf", *m, at, r,
			func() *errors.Validation { return validate.MultipleOfNativeType(name, "body", v, *m) },
			func() *errors.Validation { return validate.MultipleOf(name, "body", f, *m) })
	}
	if m, x := l.minimum, l.exclusiveMinimum; m != nil {
		c.bound(&l.numeric, l.numeric.minimum, "Minimum boundary", *m, at, r,
			func() *errors.Validation { return validate.MinimumNativeType(name, "body", v, *m, x) },
			func() *errors.Validation { return validate.Minimum(name, "body", f, *m, x) })
	}
	if m, x := l.maximum, l.exclusiveMaximum; m != nil {
		c.bound(&l.numeric, l.numeric.maximum, "Maximum boundary", *m, at, r,
			func() *errors.Validation { return validate.MaximumNativeType(name, "body", v, *m, x) },
			func() *errors.Validation { return validate.Maximum(name, "body", f, *m, x) })
	}
}

// bound checks a number against a bound. A bound that does not have the schema's type itself (fits) is an error for
// every number, and is compared as a float64 (general).
func (c *validator) bound(
	n *numeric, fits bool, prefix string, bound float64, at *valuePath, r *result,
	native, general func() *errors.Validation,
) {
	check := native
	if !fits {
		c.fail(r, func() *field.Error {
			err := validate.IsValueValidAgainstRange(bound, n.kind, n.format, prefix, c.name(at))
			return field.Invalid(c.path, "", err.Error())
		})
		check = general
	}
	if err := check(); err != nil {
		c.fail(r, func() *field.Error { return c.invalid(at, err.Value, err) })
	}
}
