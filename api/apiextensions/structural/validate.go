package structural

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-openapi/swag/conv"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// maxSteps is how many pairs of a schema and a value one validation looks at: lists of choices under lists of values multiply.
const maxSteps = 20_000_000

// Validate tells what is wrong with a value, besides lists that hold the same twice (ValidateLists), embedded metadata and rules.
// What is wrong and was the same in old (nil: there is none) is no error. path is where the value stands, nil for an object.
func (s *Schema) Validate(path *field.Path, v, old any) field.ErrorList {
	c := checker{path: path, quiet: true}
	if r := c.value(s, v, nil, false, nil); r.failed == 0 && c.steps <= maxSteps {
		return nil
	}
	c = checker{path: path}
	r := c.value(s, v, old, old != nil, nil)
	if c.steps > maxSteps {
		return field.ErrorList{field.Invalid(path, "", "the object has too many values for the choices of its schema to be checked")}
	}
	return r.errors
}

// checker validates one object, first quietly: what is right needs no words. The words are those of kube-openapi's errors, which Kubernetes' users know; the walk is our own:
// the library's makes its validators again for every value, and keeps every pattern for good.
type checker struct {
	path  *field.Path
	steps int
	// quiet counts errors and makes none.
	quiet bool
	// anyIntOrString leaves out the types of x-kubernetes-int-or-string, as Kubernetes does for defaults.
	anyIntOrString bool
}

// result is what a schema says of a value.
type result struct {
	failed int
	errors field.ErrorList // failed of them, unless the checker is quiet
	// matches counts what was right: of several choices that all fail, the one with most of it is told of.
	matches int
}

// fail notes an error.
func (c *checker) fail(r *result, err func() *field.Error) {
	r.failed++
	if !c.quiet {
		r.errors = append(r.errors, err())
	}
}

func (r *result) merge(o result) {
	r.failed += o.failed
	r.errors = append(r.errors, o.errors...)
	r.matches += o.matches
}

// value checks v; correlated tells that old is what stood there before.
func (c *checker) value(s *Schema, v, old any, correlated bool, at *place) result {
	r := c.plain(s, v, old, correlated, at)
	if r.failed > 0 && correlated && s.same(v, old) {
		return result{}
	}
	return r
}

// plain checks v without regard to whether it was so before.
func (c *checker) plain(s *Schema, v, old any, correlated bool, at *place) result {
	var r result
	if c.steps++; c.steps > maxSteps {
		return r
	}
	if v == nil {
		if c.types(s) != "" && !s.nullable {
			c.fail(&r, func() *field.Error { return c.wrongType(at, c.types(s), "null") })
		} else {
			r.matches++
		}
		c.enum(s, v, at, &r)
		return r
	}
	if c.types(s) != "" || s.limits != nil && s.limits.format != "" {
		c.kind(s, v, at, &r)
		r.matches++
	}
	c.choices(s, v, at, &r)
	r.matches++
	switch v := v.(type) {
	case string:
		c.text(s, v, at, &r)
	case int64:
		c.number(s, float64(v), v, at, &r)
	case float64:
		c.number(s, v, v, at, &r)
	case []any:
		c.list(s, v, old, correlated, at, &r)
		r.matches++
	}
	c.enum(s, v, at, &r)
	r.matches++
	if obj, ok := v.(map[string]any); ok {
		c.object(s, obj, old, correlated, at, &r)
		r.matches++
	}
	r.matches++
	if len(r.errors) > 1 && (s.allOf != nil || s.anyOf != nil || s.oneOf != nil) {
		r.errors = distinct(r.errors)
		r.failed = len(r.errors)
	}
	return r
}

// distinct leaves out what is said twice: by a schema and by what it combines.
func distinct(errs field.ErrorList) field.ErrorList {
	said := make(map[string]bool, len(errs))
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		text := e.Error()
		was := said[text]
		said[text] = true
		return was
	})
}

// kindOf names the OpenAPI type and format of a decoded JSON value.
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

// types are the OpenAPI types that values may have, as messages name them; "" for any.
func (c *checker) types(s *Schema) string {
	if s.intOrString && s.kind == "" && !c.anyIntOrString {
		return "integer,string"
	}
	return s.kind
}

func (c *checker) kind(s *Schema, v any, at *place, r *result) {
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
	composed := kind == "string" || kind == "array"
	switch numeric := s.kind == "number" || integer; {
	case !composed && want != "" && !fits && format != want:
		r.matches--
		c.fail(r, func() *field.Error { return c.wrongType(at, want, format) })
	case !numeric && want != "" && composed:
	case !fits:
		r.matches--
		c.fail(r, func() *field.Error { return c.wrongType(at, c.types(s), kind) })
	}
}

func (c *checker) wrongType(at *place, want, got string) *field.Error {
	return field.TypeInvalid(c.at(at), got, errors.InvalidType(c.name(at), "body", want, got).Error())
}

func (c *checker) enum(s *Schema, v any, at *place, r *result) {
	if s.limits == nil || len(s.limits.enum) == 0 {
		return
	}
	if text, ok := v.(string); ok && s.limits.enumStrings[text] {
		return
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

// enumText is a value as messages list it.
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

// same compares as enumerations do: a number may be an integer or not.
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

func (c *checker) text(s *Schema, v string, at *place, r *result) {
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

func (c *checker) invalid(at *place, v any, err *errors.Validation) *field.Error {
	return field.Invalid(c.at(at), v, err.Error())
}

func (c *checker) number(s *Schema, f float64, v any, at *place, r *result) {
	r.matches += 2
	l := s.limits
	if l == nil {
		return
	}
	name := c.name(at)
	if !l.fitsAlways(v) {
		if err := validate.IsValueValidAgainstRange(v, l.numeric.kind, l.numeric.format, "Checked", name); err != nil {
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

// bound checks a number by a bound: one that is itself not of the schema's type fails always.
func (c *checker) bound(n *numeric, fits bool, prefix string, bound float64, at *place, r *result, native, general func() *errors.Validation) {
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

func (c *checker) list(s *Schema, v []any, old any, correlated bool, at *place, r *result) {
	r.matches++
	if s.items != nil {
		var before common.MapList
		if correlated && s.listType == "map" {
			if list, ok := old.([]any); ok {
				before = common.MakeMapList(s, list)
			}
		}
		for i := range v {
			at := place{parent: at, index: i, isIndex: true}
			var was any
			if before != nil {
				was = before.Get(v[i])
			}
			r.merge(c.value(s.items, v[i], was, was != nil, &at))
		}
	}
	if l := s.limits; l != nil {
		n := int64(len(v))
		if l.minItems != nil && n < *l.minItems {
			c.fail(r, func() *field.Error { return c.invalid(at, n, errors.TooFewItems(c.name(at), "body", *l.minItems, n)) })
		}
		if l.maxItems != nil && n > *l.maxItems {
			c.fail(r, func() *field.Error { return field.TooMany(c.at(at), int(n), int(*l.maxItems)) })
		}
	}
}

func (c *checker) object(s *Schema, v map[string]any, old any, correlated bool, at *place, r *result) {
	if l := s.limits; l != nil {
		n := int64(len(v))
		if l.minProperties != nil && n < *l.minProperties {
			c.fail(r, func() *field.Error {
				return c.invalid(at, n, errors.TooFewProperties(c.name(at), "body", *l.minProperties, n))
			})
		}
		if l.maxProperties != nil && n > *l.maxProperties {
			c.fail(r, func() *field.Error { return field.TooMany(c.at(at), int(n), int(*l.maxProperties)) })
		}
	}
	before, _ := old.(map[string]any)
	below := func(s *Schema, name string, value any) {
		at := place{parent: at, name: name}
		was, ok := before[name]
		r.merge(c.value(s, value, was, correlated && ok, &at))
	}
	if s.additional != nil {
		from := len(r.errors)
		for name, value := range v {
			if _, ok := s.properties[name]; !ok {
				below(s.additional, name, value)
			}
		}
		slices.SortStableFunc(r.errors[from:], func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	}
	for _, m := range s.members {
		if value, ok := v[m.name]; ok {
			below(m.schema, m.name, value)
		}
	}
	if s.limits != nil {
		for _, name := range s.limits.required {
			if _, ok := v[name]; !ok {
				c.fail(r, func() *field.Error { return field.Required(c.at(&place{parent: at, name: name}), "") })
			}
		}
	}
}

// choices checks v by what s combines: anyOf, oneOf, allOf, not.
func (c *checker) choices(s *Schema, v any, at *place, r *result) {
	r.matches++
	if len(s.anyOf) > 0 {
		var best *result
		for _, choice := range s.anyOf {
			one := c.plain(choice, v, nil, false, at)
			if one.failed == 0 {
				best = &one
				break
			}
			if best == nil || one.matches > best.matches {
				best = &one
			}
		}
		if best.failed > 0 {
			c.fail(r, func() *field.Error { return c.unfit(at, "must validate at least one schema (anyOf)") })
		}
		r.merge(*best)
	}
	if len(s.oneOf) > 0 {
		c.exactlyOne(s, v, at, r)
	}
	if len(s.allOf) > 0 {
		valid := 0
		for _, part := range s.allOf {
			one := c.plain(part, v, nil, false, at)
			if one.failed == 0 {
				valid++
			}
			r.merge(one)
		}
		switch valid {
		case len(s.allOf):
		case 0:
			c.fail(r, func() *field.Error { return c.unfit(at, "must validate all the schemas (allOf). None validated") })
		default:
			c.fail(r, func() *field.Error { return c.unfit(at, "must validate all the schemas (allOf)") })
		}
	}
	if s.not != nil && c.plain(s.not, v, nil, false, at).failed == 0 {
		c.fail(r, func() *field.Error { return c.unfit(at, "must not validate the schema (not)") })
	}
}

func (c *checker) exactlyOne(s *Schema, v any, at *place, r *result) {
	var failed, right *result
	valid := 0
	for _, choice := range s.oneOf {
		one := c.plain(choice, v, nil, false, at)
		switch {
		case one.failed == 0:
			if valid++; right == nil {
				right = &one
			}
			failed = nil
		case valid == 0 && (failed == nil || one.matches > failed.matches):
			failed = &one
		}
	}
	switch valid {
	case 1:
		r.merge(*right)
		return
	case 0:
		c.fail(r, func() *field.Error {
			return c.unfit(at, "must validate one and only one schema (oneOf). Found none valid")
		})
	default:
		c.fail(r, func() *field.Error {
			return c.unfit(at, fmt.Sprintf("must validate one and only one schema (oneOf). Found %d valid alternatives", valid))
		})
	}
	if failed != nil {
		r.merge(*failed)
	}
}

// unfit is an error of what s combines; as in Kubernetes it stands at the object and names the value in its text.
func (c *checker) unfit(at *place, what string) *field.Error {
	return field.Invalid(c.path, "", fmt.Sprintf("%q %s", c.name(at), what))
}

// name is the path as messages name it: that below c.path.
func (c *checker) name(at *place) string {
	if c.quiet {
		return ""
	}
	return at.String()
}

// at is the path of an error.
func (c *checker) at(at *place) *field.Path {
	name := at.String()
	switch {
	case name == "":
		return c.path
	case c.path == nil:
		return field.NewPath(name)
	}
	return c.path.Child(name)
}

// same tells whether v is what it was before, where lists with keys are compared item by item.
func (s *Schema) same(v, old any) bool {
	return common.NewCorrelatedObject(v, old, s).CachedDeepEqual()
}
