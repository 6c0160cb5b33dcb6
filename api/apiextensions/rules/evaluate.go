package rules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Validate tells what the rules have against a new object. The end of ctx ends the evaluation, which is an error.
func (s *Set) Validate(ctx context.Context, obj map[string]any) field.ErrorList {
	if s == nil {
		return nil
	}
	e := evaluation{ctx: ctx, budget: celconfig.RuntimeCELCostBudget, which: every}
	e.value(s.root, nil, obj, nil, false)
	return e.errors
}

// ValidateUpdate tells what the rules have against what old becomes. What a rule without oldSelf has against a value
// that is as it was is no error, but a warning (Warnings).
func (s *Set) ValidateUpdate(ctx context.Context, obj, old map[string]any) field.ErrorList {
	return s.update(ctx, obj, old, changes)
}

// Warnings tells what the rules have against values that are as they were in old.
func (s *Set) Warnings(ctx context.Context, obj, old map[string]any) []string {
	errs := s.update(ctx, obj, old, remains)
	out := make([]string, len(errs))
	for i, e := range errs {
		out[i] = e.Error()
	}
	return out
}

func (s *Set) update(ctx context.Context, obj, old map[string]any, which which) field.ErrorList {
	if s == nil {
		return nil
	}
	e := evaluation{ctx: ctx, budget: celconfig.RuntimeCELCostBudget, which: which}
	e.value(s.root, nil, obj, common.NewCorrelatedObject(obj, old, s.root.typed), false)
	return e.errors
}

// correlate is a value that is as it was.
func correlate(n *node, v any) *common.CorrelatedObject {
	if n == nil {
		return nil
	}
	return common.NewCorrelatedObject(v, v, n.typed)
}

// which says which rules are asked.
type which int

const (
	every which = iota
	// changes are those of values that have changed, and those that read oldSelf.
	changes
	// remains are the others.
	remains
)

// evaluation asks the rules about one object.
type evaluation struct {
	ctx    context.Context // nil for a default: only the budget ends it
	budget int64
	which  which
	errors field.ErrorList
	over   bool // the budget is spent
}

// value asks the rules of n, and of what is below, about v. old is v and what it was before; nil: it was not there, or
// nobody knows. unchanged: v stands in something that is as it was.
func (e *evaluation) value(n *node, path *field.Path, v any, old *common.CorrelatedObject, unchanged bool) {
	if n == nil || v == nil || e.over {
		return
	}
	if old != nil && old.OldValue == nil {
		old = nil
	}
	if e.which != every && old != nil && (len(n.rules) > 0 || n.items != nil) { // of items, old may know nothing
		unchanged = unchanged || old.CachedDeepEqual()
	}
	if len(n.rules) > 0 {
		e.rules(n, path, v, old, unchanged)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if below := n.fields[name]; below != nil {
				e.value(below, path.Child(name), v[name], old.Key(name), unchanged)
			} else if n.additional != nil && n.schema.Property(name) == nil {
				e.value(n.additional, path.Key(name), v[name], old.Key(name), unchanged)
			}
		}
	case []any:
		for i := range v {
			e.value(n.items, path.Index(i), v[i], old.Index(i), unchanged)
		}
	}
}

func (e *evaluation) rules(n *node, path *field.Path, v any, old *common.CorrelatedObject, unchanged bool) {
	vars := variables{self: common.UnstructuredToVal(v, n.typed)}
	if old != nil {
		vars.old = common.UnstructuredToVal(old.OldValue, n.typed)
	}
	for i := range n.rules {
		r := &n.rules[i]
		if left := unchanged && !r.transition(); left != (e.which == remains) {
			continue
		}
		if r.transition() && !r.optionalOld() && vars.old == nil {
			continue
		}
		vars.optional = r.optionalOld()
		if !e.rule(n, r, path, v, &vars) {
			e.over = true
			return
		}
	}
}

// rule asks one rule, and reports whether there is anything left of the budget.
func (e *evaluation) rule(n *node, r *compiled, path *field.Path, v any, vars *variables) bool {
	if r.err != nil {
		e.add(field.Invalid(path, n.schema.Type(), fmt.Sprintf("rule compile error: %v", r.err)))
		return true
	}
	out, details, err := e.eval(r.when, vars)
	if e.late(path, n) || !e.spend(details, path, n) {
		return false
	}
	if err != nil {
		text, stop := failed(err, r.rule)
		e.add(field.Invalid(path, n.schema.Type(), text))
		return !stop
	}
	if out == types.True {
		return true
	}
	text, ok := e.message(n, r, path, vars)
	e.add(refusal(r.rule.Reason, child(n.schema, path, r.rule.FieldPath), shown(v), text))
	return ok
}

// failed is what is said of a rule that could not be evaluated; stop: no rule is asked after it.
func failed(err error, r *apiextensionsv1.ValidationRule) (text string, stop bool) {
	switch text := err.Error(); {
	case strings.HasPrefix(text, "no such overload"):
		return fmt.Sprintf("'%v': call arguments did not match a supported operator, function or macro signature for rule: %v", text, name(r)), false
	case strings.HasPrefix(text, "operation cancelled: actual cost limit exceeded"):
		return fmt.Sprintf("'%v': no further validation rules will be run due to call cost exceeds limit for rule: %v",
			text, name(r)), true
	default:
		return fmt.Sprintf("%v evaluating rule: %v", text, name(r)), false
	}
}

// name is how messages call a rule.
func name(r *apiextensionsv1.ValidationRule) string {
	if r.Message != "" {
		return strings.TrimSpace(r.Message)
	}
	return strings.TrimSpace(r.Rule)
}

// message is what is said of a value that a rule refuses. ok: something is left of the budget.
func (e *evaluation) message(n *node, r *compiled, path *field.Path, vars *variables) (text string, ok bool) {
	text = "failed rule: " + name(r.rule)
	if r.rule.Message != "" {
		text = name(r.rule)
	}
	if r.message == nil {
		return text, true
	}
	read := variables{self: vars.self} // as in Kubernetes: not as optional as the rule's
	if r.transition() {
		read.old = vars.old
	}
	out, details, err := e.eval(r.message, &read)
	if e.late(path, n) || !e.spend(details, path, n) {
		return text, false
	}
	if err != nil {
		return text, true
	}
	made, isText := out.Value().(string)
	made = strings.TrimSpace(made)
	if !isText || made == "" || strings.ContainsAny(made, "\n\r") ||
		len(made) > celconfig.MaxEvaluatedMessageExpressionSizeBytes {
		return text, true
	}
	return made, true
}

func (e *evaluation) eval(x *expression, vars *variables) (ref.Val, *cel.EvalDetails, error) {
	if e.ctx == nil {
		return x.program.Eval(vars)
	}
	return x.program.ContextEval(e.ctx, vars)
}

// late tells, also to the client, that the time is over. What a unit of cost takes is not the same for all expressions.
func (e *evaluation) late(path *field.Path, n *node) bool {
	if e.ctx == nil || e.ctx.Err() == nil {
		return false
	}
	e.add(field.Invalid(path, n.schema.Type(),
		"validation failed due to running out of time, no further validation rules will be run"))
	return true
}

// spend takes what an evaluation did cost from the budget.
func (e *evaluation) spend(details *cel.EvalDetails, path *field.Path, n *node) bool {
	if details == nil || details.ActualCost() == nil {
		e.add(field.InternalError(path,
			errors.New("runtime cost could not be calculated, no further validation rules will be run")))
		return false
	}
	e.budget -= int64(min(*details.ActualCost(), uint64(celconfig.RuntimeCELCostBudget)+1))
	if e.budget < 0 {
		e.add(field.Invalid(path, n.schema.Type(),
			"validation failed due to running out of cost budget, no further validation rules will be run"))
		return false
	}
	return true
}

func (e *evaluation) add(err *field.Error) { e.errors = append(e.errors, err) }

// shown is how errors show a value: large ones not at all.
func shown(v any) any {
	switch v.(type) {
	case map[string]any, []any:
		return field.OmitValueType{}
	}
	return v
}

// refusal is the error of a rule that gives a reason.
func refusal(reason *apiextensionsv1.FieldValueErrorReason, path *field.Path, v any, text string) *field.Error {
	if reason != nil {
		switch *reason {
		case apiextensionsv1.FieldValueForbidden:
			return field.Forbidden(path, text)
		case apiextensionsv1.FieldValueRequired:
			return field.Required(path, text)
		case apiextensionsv1.FieldValueDuplicate:
			return field.Duplicate(path, v)
		}
	}
	return field.Invalid(path, v, text)
}

// variables are what the expressions of one value read.
type variables struct {
	self, old ref.Val // old: nil for none
	// optional: oldSelf is an optional value.
	optional bool
}

// ResolveName implements interpreter.Activation.
func (v *variables) ResolveName(name string) (any, bool) {
	switch {
	case name == self:
		return v.self, true
	case name != oldSelf:
		return nil, false
	case v.optional && v.old == nil:
		return types.OptionalNone, true
	case v.optional:
		return types.OptionalOf(v.old), true
	}
	return v.old, v.old != nil
}

// Parent implements interpreter.Activation.
func (*variables) Parent() interpreter.Activation { return nil }
