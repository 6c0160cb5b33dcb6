package match

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"bonsai/api/admissionregistration/expression"
)

// Conditions are the match conditions of a webhook or a policy, compiled when they are first asked. Requests share it.
// once compiles it for all of them, and an error of the compilation stays until the configuration changes.
type Conditions struct {
	texts    []string
	in       expression.Scope
	once     sync.Once
	programs []*expression.Program
	err      error
}

// NewConditions takes conditions, whose expressions may use what in says.
func NewConditions(all []admissionregistrationv1.MatchCondition, in expression.Scope) *Conditions {
	out := &Conditions{in: in}
	for i := range all {
		out.texts = append(out.texts, all[i].Expression)
	}
	return out
}

func (c *Conditions) compile(with *expression.Compiler) ([]*expression.Program, error) {
	c.once.Do(func() {
		for _, text := range c.texts {
			p, err := with.Compile(text, c.in, expression.Bool())
			if err != nil {
				c.err = fmt.Errorf("compilation error: %w", err)
				return
			}
			c.programs = append(c.programs, p)
		}
	})
	return c.programs, c.err
}

// Meets reports whether all match conditions hold, of what variables says. One that does not is enough to leave the
// asker out, whatever errors the others have; otherwise an error counts as its failure policy says: it is returned, or
// the asker left out.
func (r *Request) Meets(ctx context.Context, by *Asker, c *Conditions,
	variables func() (*expression.Variables, error)) (bool, error) {
	if len(c.texts) == 0 {
		return true, nil
	}
	begun := time.Now()
	holds, err := r.evaluate(ctx, c, variables)
	r.metrics.conditions(by, string(r.A.Operation), time.Since(begun), holds, err)
	switch {
	case err == nil:
		return holds, nil
	case by.Ignores:
		r.Warn("match conditions cannot be evaluated, who has them is left out", by.Kind, by.Name, err)
		return false, nil
	}
	r.Warn("match conditions cannot be evaluated", by.Kind, by.Name, err)
	return false, err
}

// evaluate compiles the conditions, if that is not done yet, and runs them in their order. All conditions share one
// budget. variables may convert the objects, so it is called only after the programs are compiled.
func (r *Request) evaluate(ctx context.Context, c *Conditions, variables func() (*expression.Variables, error)) (bool,
	error) {
	programs, err := c.compile(&r.Compiler)
	if err != nil {
		return false, err
	}
	vars, err := variables()
	if err != nil {
		return false, err
	}
	budget := expression.Budget(expression.MatchConditionsBudget)
	values := expression.NewEvaluation(vars)
	var errs []error
	for _, p := range programs {
		v, err := p.Evaluate(ctx, values, &budget)
		switch {
		case errors.Is(err, expression.ErrBudget):
			return false, err
		case err != nil:
			errs = append(errs, err)
		case !expression.Holds(v):
			return false, nil
		}
	}
	return len(errs) == 0, utilerrors.NewAggregate(errs)
}
