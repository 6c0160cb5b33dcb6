package policies

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/common/types/ref"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/apiserver/admission/match"
)

// evaluation is one of a policy, for a request and a parameter. It lives for one call of run or invoke.
type evaluation struct {
	*plugin
	request *match.Request
	policy  *policy
	target  match.Target
	param   map[string]any
}

// variables are what the policy's expressions see; namespace is not shown to match conditions, as upstream.
func (e *evaluation) variables(ctx context.Context, namespace bool) (*expression.Variables, error) {
	vars, err := e.request.Variables(ctx, e.target)
	if err != nil {
		return nil, err
	}
	vars.Params = e.param
	if namespace {
		vars.NamespaceObject, err = e.request.NamespaceObject(ctx)
	}
	return vars, err
}

// meets asks the policy's match conditions.
func (e *evaluation) meets(ctx context.Context) (bool, error) {
	by := match.Asker{Name: e.policy.name, Kind: "policy", Type: e.kind, Ignores: e.policy.ignores}
	return e.request.Meets(ctx, &by, e.policy.conditions, func() (*expression.Variables, error) {
		return e.variables(ctx, false)
	})
}

// run evaluates a validating policy and returns what did not pass. Its audit annotations go to said. All validations
// are evaluated, also after one that failed, so that the client sees every reason at once. An exhausted budget ends
// that, and is the only decision then. Messages and annotations come last, from what is left of the budget.
func (e *evaluation) run(ctx context.Context, said *annotations) []decision {
	failed := func(err error) []decision {
		return []decision{{message: err.Error(), reason: metav1.StatusReasonInvalid, err: err}}
	}
	if meets, err := e.meets(ctx); err != nil {
		return failed(err)
	} else if !meets {
		return nil
	}
	vars, err := e.variables(ctx, true)
	if err != nil {
		return failed(err)
	}
	compiled := e.policy.compile(&e.Matcher.Compiler)
	values, budget := expression.NewEvaluation(vars), expression.Budget(expression.PolicyBudget)
	var out []decision
	for i := range compiled.validations {
		begun := time.Now()
		v, err := compiled.validations[i].evaluate(ctx, values, &budget)
		d := decision{validation: i, reason: metav1.StatusReasonInvalid, err: err, took: time.Since(begun)}
		switch {
		case errors.Is(err, expression.ErrBudget):
			return failed(err)
		case err != nil:
			d.message = err.Error()
		case expression.Holds(v):
			continue
		case e.policy.validations[i].Reason != nil:
			d.reason = *e.policy.validations[i].Reason
		}
		out = append(out, d)
	}
	e.explain(ctx, compiled, values, budget, out)
	return append(out, e.annotate(ctx, compiled, values, budget, said)...)
}

// annotate evaluates the audit annotations. budget is a copy: nothing is evaluated after it.
func (e *evaluation) annotate(ctx context.Context, compiled *compiled, values *expression.Evaluation,
	budget expression.Budget, said *annotations) (out []decision) {
	for i := range compiled.annotations {
		begun := time.Now()
		v, err := compiled.annotations[i].evaluate(ctx, values, &budget)
		if err == nil {
			said.add(e.policy.annotations[i].Key, v)
			continue
		}
		out = append(out, decision{message: err.Error(), reason: metav1.StatusReasonInvalid, err: err,
			took: time.Since(begun), always: true})
		if errors.Is(err, expression.ErrBudget) {
			break
		}
	}
	return out
}

// explain fills in the messages of validations that do not hold. What they cost is not taken from what is left for
// audit annotations.
func (e *evaluation) explain(ctx context.Context, compiled *compiled, values *expression.Evaluation,
	budget expression.Budget, all []decision) {
	for i := range all {
		d := &all[i]
		if d.err != nil {
			continue
		}
		d.message = message(&e.policy.validations[d.validation])
		says := compiled.validations[d.validation].message
		if says == nil {
			continue
		}
		v, err := says.evaluate(ctx, values, &budget)
		if errors.Is(err, expression.ErrBudget) { // no message of this evaluation counts
			for j := range all {
				if all[j].err == nil {
					all[j].err, all[j].message = err, "failed messageExpression: "+err.Error()
				}
			}
			return
		}
		if err != nil {
			e.request.Warn("a messageExpression cannot be evaluated", "policy", e.policy.name, err)
			continue
		}
		if text, ok := expression.Text(v); ok && len(text) <= expression.MaxMessage && !strings.Contains(text, "\n") {
			if text = strings.TrimSpace(text); text != "" {
				d.message = text
			}
		}
	}
}

// evaluate returns the expression's value and takes its cost from budget. It fails with ErrBudget if that was too
// small, with the error of the compilation if there is no program, else with the error of the expression.
func (c *code) evaluate(ctx context.Context, values *expression.Evaluation, budget *expression.Budget) (ref.Val,
	error) {
	if c.err != nil {
		return nil, c.err
	}
	return c.program.Evaluate(ctx, values, budget)
}

// message is the text of a refusal whose validation has no message expression.
func message(v *admissionregistrationv1.Validation) string {
	if said := strings.TrimSpace(v.Message); said != "" {
		return said
	}
	return fmt.Sprintf("failed expression: %v", strings.TrimSpace(v.Expression))
}
