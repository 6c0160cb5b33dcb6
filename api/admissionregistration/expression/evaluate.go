package expression

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/lazy"
)

// MatchConditionsBudget is what all match conditions of one webhook or policy may cost for one request.
const MatchConditionsBudget = celconfig.RuntimeCELCostBudgetMatchConditions

// PolicyBudget is what all other expressions of a policy may cost for one request, binding and parameter.
const PolicyBudget = celconfig.RuntimeCELCostBudget

// MaxMessage is how long, in bytes, what a message expression says may be.
const MaxMessage = celconfig.MaxEvaluatedMessageExpressionSizeBytes

// ErrBudget is the end of a Budget.
var ErrBudget = errors.New(
	"validation failed due to running out of cost budget, no further validation rules will be run")

// Budget is what is left of the cost that a request may cause, in upstream's units.
type Budget int64

// spend takes cost away, and fails when there was not so much.
func (b *Budget) spend(cost uint64) error {
	if cost > uint64(*b) {
		*b = 0
		return ErrBudget
	}
	*b -= Budget(cost)
	return nil
}

// Variables are the values of one evaluation. What is nil is null. The maps are JSON documents, which are not changed.
type Variables struct {
	Object, OldObject, Request, NamespaceObject, Params map[string]any
	Claims, User                                        map[string]any
	// Authorizer and RequestResource are values of package library.
	Authorizer, RequestResource ref.Val
}

// Parent implements interpreter.Activation.
func (*Variables) Parent() interpreter.Activation { return nil }

// ResolveName implements interpreter.Activation.
func (v *Variables) ResolveName(name string) (any, bool) {
	document := func(m map[string]any) (any, bool) {
		if m == nil {
			return types.NullValue, true
		}
		return m, true
	}
	value := func(r ref.Val) (any, bool) {
		if r == nil {
			return types.NullValue, true
		}
		return r, true
	}
	switch name {
	case object:
		return document(v.Object)
	case oldObject:
		return document(v.OldObject)
	case request:
		return document(v.Request)
	case namespaceObject:
		return document(v.NamespaceObject)
	case params:
		return document(v.Params)
	case claims:
		return document(v.Claims)
	case user:
		return document(v.User)
	case authorizer:
		return value(v.Authorizer)
	case requestResource:
		return value(v.RequestResource)
	}
	return nil, false
}

// Evaluation evaluates several expressions with the same values: a variable that more than one of them uses is
// evaluated once. It belongs to one goroutine.
type Evaluation struct {
	values *Variables
	lazy   *lazy.MapValue // the composed variables
	have   map[*variable]bool
	// cost of the variables that the expression at hand was the first to use
	cost uint64
	ctx  context.Context //nolint:containedctx // of the Evaluate at hand, for the variables that it asks for
	err  error           // that ends everything
}

// NewEvaluation returns an Evaluation of v.
func NewEvaluation(v *Variables) *Evaluation {
	return &Evaluation{values: v, lazy: lazy.NewMapValue(variablesType().CelType()), have: map[*variable]bool{}}
}

// Parent implements interpreter.Activation.
func (*Evaluation) Parent() interpreter.Activation { return nil }

// ResolveName implements interpreter.Activation.
func (e *Evaluation) ResolveName(name string) (any, bool) {
	if name == variables {
		return e.lazy, true
	}
	return e.values.ResolveName(name)
}

// compose makes vars known; they are not evaluated before somebody asks for them.
func (e *Evaluation) compose(vars []*variable) {
	for _, v := range vars {
		if !e.have[v] {
			e.have[v] = true
			e.lazy.Append(v.name, func(*lazy.MapValue) ref.Val { return e.variable(v) })
		}
	}
}

func (e *Evaluation) variable(v *variable) ref.Val {
	if v.program == nil {
		return types.WrapErr(v.missing())
	}
	out, cost, err := v.program.run(e.ctx, e)
	e.cost += cost
	if err != nil {
		return types.WrapErr(fmt.Errorf("composited variable %q fails to evaluate: %w", v.name, err))
	}
	return out
}

// run evaluates p and tells its cost, without that of variables.
func (p *Program) run(ctx context.Context, e *Evaluation) (ref.Val, uint64, error) {
	if err := ctx.Err(); err != nil { // an expression is looked at to its end once it has begun, so that none may begin
		return nil, 0, err
	}
	e.compose(p.variables)
	out, details, err := p.program.ContextEval(ctx, e)
	if details == nil || details.ActualCost() == nil { // upstream: the expression could not be accounted for
		e.err = fmt.Errorf("runtime cost could not be calculated for expression: %v, no further expression will be run",
			p.text)
		return nil, 0, e.err
	}
	return out, *details.ActualCost(), err
}

// Evaluate evaluates p within what is left of the budget, and takes its cost from it. ErrBudget says that the budget
// was too small; every other error is of the expression itself.
func (p *Program) Evaluate(ctx context.Context, e *Evaluation, b *Budget) (ref.Val, error) {
	e.ctx, e.cost = ctx, 0
	out, cost, err := p.run(ctx, e)
	if e.err != nil {
		return nil, e.err
	}
	if spent := b.spend(cost + e.cost); spent != nil {
		return nil, spent
	}
	if err != nil {
		return nil, fmt.Errorf("expression '%v' resulted in error: %w", p.text, err)
	}
	return out, nil
}

// Holds reports whether a condition evaluated to true.
func Holds(v ref.Val) bool { return v == types.True }

// Text is what an expression of type String or Null evaluated to; ok is false for null.
func Text(v ref.Val) (text string, ok bool) {
	if v.Type() != cel.StringType {
		return "", false
	}
	text, ok = v.Value().(string)
	return text, ok
}
