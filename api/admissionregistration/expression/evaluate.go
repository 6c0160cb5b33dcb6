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
)

// MatchConditionsBudget is what all match conditions of one webhook or policy may cost for one request.
const MatchConditionsBudget = celconfig.RuntimeCELCostBudgetMatchConditions

// ErrBudget is the end of a Budget.
var ErrBudget = errors.New("validation failed due to running out of cost budget, no further validation rules will be run")

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
	Object, OldObject, Request, NamespaceObject map[string]any
	// Authorizer and RequestResource are values of package library.
	Authorizer, RequestResource ref.Val
}

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
	case authorizer:
		return value(v.Authorizer)
	case requestResource:
		return value(v.RequestResource)
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (*Variables) Parent() interpreter.Activation { return nil }

// Evaluate evaluates p within what is left of the budget, and takes its cost from it. ErrBudget says that the budget was too small;
// every other error is of the expression itself.
func (p *Program) Evaluate(ctx context.Context, v *Variables, b *Budget) (ref.Val, error) {
	out, details, err := p.program.ContextEval(ctx, v)
	if details == nil || details.ActualCost() == nil { // upstream: the expression could not be accounted for
		return nil, fmt.Errorf("runtime cost could not be calculated for expression: %v, no further expression will be run", p.text)
	}
	if spent := b.spend(*details.ActualCost()); spent != nil {
		return nil, spent
	}
	if err != nil {
		return nil, fmt.Errorf("expression '%v' resulted in error: %w", p.text, err)
	}
	return out, nil
}

// Holds tells whether a condition evaluated to true.
func Holds(v ref.Val) bool { return v == types.True }

// Bool is the type of conditions.
func Bool() *cel.Type { return cel.BoolType }
