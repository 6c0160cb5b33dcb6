package policies

import (
	"fmt"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"bonsai/api/admissionregistration/expression"
)

// compiled are a policy's expressions, in the order of its fields.
type compiled struct {
	validations []check
	annotations []code
	mutations   []code
}

// code is a compiled expression, or why it cannot be: the policy was stored by a server that knew more.
type code struct {
	program *expression.Program
	err     error
}

// check is one validation.
type check struct {
	code
	message *code // nil: it has no expression for it
}

// compile compiles the policy when it is first needed.
func (p *policy) compile(with *expression.Compiler) *compiled {
	p.once.Do(func() {
		in := expression.Scope{Params: p.params != nil, Authorizer: true}
		composed := with.Compose()
		for _, v := range p.variables {
			// The expressions that use a variable report that it cannot be compiled.
			composed.Add(v.Name, v.Expression, in) //nolint:errcheck // see above
		}
		in.Patches = len(p.mutations) > 0
		one := func(text string, in expression.Scope, want *cel.Type, more ...*cel.Type) code {
			program, err := composed.Compile(text, in, want, more...)
			if err != nil {
				err = fmt.Errorf("compilation error: %w", err)
			}
			return code{program, err}
		}
		for _, v := range p.validations {
			c := check{code: one(v.Expression, in, expression.Bool())}
			if v.MessageExpression != "" {
				m := one(v.MessageExpression, expression.Scope{Params: in.Params}, expression.String())
				c.message = &m
			}
			p.compiled.validations = append(p.compiled.validations, c)
		}
		for _, a := range p.annotations {
			p.compiled.annotations = append(p.compiled.annotations,
				one(a.ValueExpression, in, expression.String(), expression.Null()))
		}
		for _, m := range p.mutations {
			switch m.PatchType {
			case admissionregistrationv1.PatchTypeApplyConfiguration:
				p.compiled.mutations = append(p.compiled.mutations,
					one(m.ApplyConfiguration.Expression, in, expression.Object()))
			default:
				p.compiled.mutations = append(p.compiled.mutations, one(m.JSONPatch.Expression, in, expression.Patch()))
			}
		}
	})
	return &p.compiled
}
