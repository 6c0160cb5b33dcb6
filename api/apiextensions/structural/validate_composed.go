package structural

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/kube-openapi/pkg/validation/errors"
)

// list validates the items of a list, and its length.
//
// Items of lists without keys have no old value: an insertion moves all items behind it, so their positions say
// nothing. An unchanged list as a whole is still ratcheted, by value. TooMany and the error for too few items come
// after the errors of items.
func (c *validator) list(s *Schema, v []any, was previous, at *valuePath, r *result) {
	r.matches++
	if s.items != nil {
		var before common.MapList
		if was.known && s.listType == "map" {
			if list, ok := was.value.([]any); ok {
				before = common.MakeMapList(s.CEL(), list) // finds items by their keys
			}
		}
		for i := range v {
			at := valuePath{parent: at, index: i, isIndex: true}
			var item previous
			if before != nil {
				item.value = before.Get(v[i])
				item.known = item.value != nil
			}
			r.merge(c.value(s.items, v[i], item, &at))
		}
	}
	if l := s.limits; l != nil {
		n := int64(len(v))
		if l.minItems != nil && n < *l.minItems {
			c.fail(r, func() *field.Error {
				return c.invalid(at, n, errors.TooFewItems(c.name(at), "body", *l.minItems, n))
			})
		}
		if l.maxItems != nil && n > *l.maxItems {
			c.fail(r, func() *field.Error { return field.TooMany(c.at(at), int(n), int(*l.maxItems)) })
		}
	}
}

// object validates the fields of an object or the values of a map, and their number.
//
// Fields that the schema does not name are not checked: Prune has removed them, or the schema preserves them.
func (c *validator) object(s *Schema, v map[string]any, was previous, at *valuePath, r *result) {
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
	before, _ := was.value.(map[string]any)
	below := func(s *Schema, name string, value any) {
		at := valuePath{parent: at, name: name}
		old, ok := before[name]
		r.merge(c.value(s, value, previous{old, was.known && ok}, &at))
	}
	if s.additional != nil {
		from := len(r.errors)
		for name, value := range v {
			if _, ok := s.properties[name]; !ok {
				below(s.additional, name, value)
			}
		}
		// The order of a Go map is random, and messages must not be.
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
				c.fail(r, func() *field.Error { return field.Required(c.at(&valuePath{parent: at, name: name}), "") })
			}
		}
	}
}

// choices validates v against the schemas that s combines. They only restrict v, so there is no ratcheting below them:
// value ignores the errors of all of them together.
func (c *validator) choices(s *Schema, v any, at *valuePath, r *result) {
	r.matches++
	if len(s.anyOf) > 0 {
		c.anyOf(s, v, at, r)
	}
	if len(s.oneOf) > 0 {
		c.oneOf(s, v, at, r)
	}
	if len(s.allOf) > 0 {
		c.allOf(s, v, at, r)
	}
	if s.not != nil && c.strict(s.not, v, previous{}, at).failed == 0 {
		c.fail(r, func() *field.Error { return c.unfit(at, "must not validate the schema (not)") })
	}
}

// anyOf stops at the first alternative that is valid. If there is none, it also reports the errors of the best one.
//
// "Best" is the alternative with most matches, and the first of several: users get one list of errors, for the
// alternative that they probably meant.
func (c *validator) anyOf(s *Schema, v any, at *valuePath, r *result) {
	var best *result
	for _, choice := range s.anyOf {
		one := c.strict(choice, v, previous{}, at)
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

// allOf reports the errors of all schemas.
func (c *validator) allOf(s *Schema, v any, at *valuePath, r *result) {
	valid := 0
	for _, part := range s.allOf {
		one := c.strict(part, v, previous{}, at)
		if one.failed == 0 {
			valid++
		}
		r.merge(one)
	}
	switch valid {
	case len(s.allOf):
	case 0:
		c.fail(r, func() *field.Error {
			return c.unfit(at, "must validate all the schemas (allOf). None validated")
		})
	default:
		c.fail(r, func() *field.Error { return c.unfit(at, "must validate all the schemas (allOf)") })
	}
}

// oneOf tries every alternative. If none is valid, it also reports the errors of the best one. If several are, their
// errors would not help.
//
// It cannot stop early, because a second valid alternative is an error. failed is reset once an alternative is valid:
// only the number of valid ones is of interest then.
func (c *validator) oneOf(s *Schema, v any, at *valuePath, r *result) {
	var failed, right *result
	valid := 0
	for _, choice := range s.oneOf {
		one := c.strict(choice, v, previous{}, at)
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
			return c.unfit(at, fmt.Sprintf("must validate one and only one schema (oneOf). Found %d valid alternatives",
				valid))
		})
	}
	if failed != nil {
		r.merge(*failed)
	}
}

// unfit returns an error of combined schemas. As in Kubernetes its path is the object's, and its text names the value.
func (c *validator) unfit(at *valuePath, what string) *field.Error {
	return field.Invalid(c.path, "", fmt.Sprintf("%q %s", c.name(at), what))
}
