package structural

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"
)

// maxSteps bounds the pairs of a schema and a value that one validation looks at. Alternatives nest, and each level
// multiplies the work for the values below it. An object that needs more is refused (Validate), instead of occupying a
// core for as long as its author likes.
const maxSteps = 20_000_000

// Validate returns what is wrong with a value, except duplicates in lists (ValidateLists), embedded metadata
// (ValidateEmbedded) and CEL rules. It ignores errors in values that are the same in old (ratcheting); nil: there is no
// old value. path is the path of the value, nil for an object.
//
// Ratcheting (KEP-4008) lets objects that became invalid by a change of their schema still be updated in other places.
// The second pass repeats the work only for invalid objects. It also decides about ratcheting, since the quiet pass
// does not know the old value.
func (s *Schema) Validate(path *field.Path, v, old any) field.ErrorList {
	// The first pass makes no errors: nearly all objects are valid, and errors have messages and paths.
	c := validator{path: path, quiet: true}
	if r := c.value(s, v, previous{}, nil); r.failed == 0 && c.steps <= maxSteps {
		return nil
	}
	c = validator{path: path}
	r := c.value(s, v, previous{old, old != nil}, nil)
	if c.steps > maxSteps {
		return field.ErrorList{field.Invalid(path, "",
			"the object has too many values for the choices of its schema to be checked")}
	}
	return r.errors
}

// validator validates one object. Its messages are those of kube-openapi, which users of Kubernetes know. The walk is
// our own: kube-openapi's makes its validators again for every value, and keeps every pattern for good.
type validator struct {
	path  *field.Path
	steps int
	// quiet: count errors, but make none. Then the paths of values are never made into text.
	quiet bool
	// anyIntOrString: ignore the type of x-kubernetes-int-or-string, as Kubernetes does in defaults.
	anyIntOrString bool
}

// previous is the value at the same place in the old object. Items of lists have one only if keys identify them.
type previous struct {
	value any
	known bool
}

// result is the result of validating a value.
type result struct {
	failed int             // the number of errors
	errors field.ErrorList // none if the validator is quiet
	// matches counts the checks that passed. If all alternatives of anyOf fail, the one with most matches is reported.
	matches int
}

// fail adds an error. err is called only if the validator is not quiet.
func (c *validator) fail(r *result, err func() *field.Error) {
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

// value validates v, and ignores its errors if it was the same before.
//
// The value is validated first and compared only if that fails, because equality costs a walk of its own, and most
// values are valid.
func (c *validator) value(s *Schema, v any, was previous, at *valuePath) result {
	r := c.strict(s, v, was, at)
	if r.failed > 0 && was.known && s.same(v, was.value) {
		return result{}
	}
	return r
}

// strict validates v without ratcheting; the values below it have theirs. The order of the checks, and what counts as a
// match, are those of the library: they decide which alternative of anyOf is reported.
//
// steps counts every call, so a schema whose alternatives nest ends at maxSteps instead of taking exponential time.
func (c *validator) strict(s *Schema, v any, was previous, at *valuePath) result {
	var r result
	if c.steps++; c.steps > maxSteps {
		return r // Validate reports it
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
		c.list(s, v, was, at, &r)
		r.matches++
	}
	c.enum(s, v, at, &r)
	r.matches++
	if obj, ok := v.(map[string]any); ok {
		c.object(s, obj, was, at, &r)
		r.matches++
	}
	r.matches++
	// Alternatives often repeat a constraint of their parent, which would be reported twice.
	if len(r.errors) > 1 && (s.allOf != nil || s.anyOf != nil || s.oneOf != nil) {
		r.errors = distinct(r.errors)
		r.failed = len(r.errors)
	}
	return r
}

// distinct drops errors that a schema and the schemas that it combines both report.
func distinct(errs field.ErrorList) field.ErrorList {
	said := make(map[string]bool, len(errs))
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		text := e.Error()
		was := said[text]
		said[text] = true
		return was
	})
}

// name returns the path as messages name it, which is relative to c.path.
func (c *validator) name(at *valuePath) string {
	if c.quiet {
		return ""
	}
	return at.String()
}

// at returns the path of an error.
func (c *validator) at(at *valuePath) *field.Path {
	name := at.String()
	switch {
	case name == "":
		return c.path
	case c.path == nil:
		return field.NewPath(name)
	}
	return c.path.Child(name)
}

// same reports whether v equals its old value. Items of lists with keys are compared by their keys, in any order.
func (s *Schema) same(v, old any) bool {
	return common.NewCorrelatedObject(v, old, s.CEL()).CachedDeepEqual()
}
