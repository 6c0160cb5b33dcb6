package policies

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/match"
)

// mutator is the plug-in MutatingAdmissionPolicy.
type mutator struct{ *plugin }

// mutation is a request on its way through the policies. It belongs to one round, and to the request's goroutine. past
// alone outlives the round.
type mutation struct {
	mutator
	*match.Request
	past    *match.Rounds
	denials []denial
}

// Admit implements admission.Mutator. Policies change the object one after the other, each what those before it made of
// it. The next ones are evaluated even if one fails: the answer reports the failures. The second round evaluates only
// those that want it and whose object has changed since; what a policy did itself counts, as upstream. If the answer is
// a refusal, the caller drops the object with all its changes.
func (p mutator) Admit(ctx context.Context, a *admission.Attributes) error {
	if a.Object == nil { // nothing to change
		return nil
	}
	all, err := p.concerned(ctx, a)
	if err != nil || len(all) == 0 {
		return err
	}
	m := &mutation{mutator: p, Request: p.Matcher.Request(a)}
	if m.past, _ = a.ReinvocationValue(mutatingName).(*match.Rounds); m.past == nil {
		m.past = &match.Rounds{}
		a.SetReinvocationValue(mutatingName, m.past)
	} else if a.Reinvoked() && m.past.Left != nil && !apiequality.Semantic.DeepEqual(m.past.Left, a.Object) {
		m.past.Outdate()
	}
	for i := range all {
		ctx, span := startSpan(ctx, "admission.policy.admit", all[i].name)
		err := m.policy(ctx, &all[i])
		span.End()
		if err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil { // what was not looked at to its end may not pass
		return err
	}
	if m.past.Wanted() && !a.Reinvoked() {
		m.past.Left = a.Object.DeepCopyObject() // the other plug-ins change it in place
	}
	return m.refuse()
}

// refuse makes one error of all failures. The first failure gives the message and the reason, and the causes name
// the first maxDenials.
func (m *mutation) refuse() error {
	if len(m.denials) == 0 {
		return nil
	}
	out := forbidden(m.A, m.denials[0].message)
	out.ErrStatus.Message, out.ErrStatus.Reason, out.ErrStatus.Code = m.denials[0].message, m.denials[0].reason,
		http.StatusForbidden
	for _, d := range m.denials {
		out.ErrStatus.Details.Causes = append(out.ErrStatus.Details.Causes, metav1.StatusCause{Message: d.message})
	}
	return out
}

// maxDenials bounds the failures that an answer reports: each of a binding's parameters may be one, and their number
// has no bound.
const maxDenials = 100

// fail notes a failure, unless the policy ignores it. b is nil if the policy itself is wrong, before any binding was
// looked at.
func (m *mutation) fail(c *candidate, b *binding, reason metav1.StatusReason, err error) {
	if c.ignores {
		m.Warn(leftOut, "policy", c.name, err)
		return
	}
	if len(m.denials) >= maxDenials {
		return
	}
	message := fmt.Sprintf("policy %q denied request: %s", c.name, err)
	if b != nil {
		message = fmt.Sprintf("policy '%s' with binding '%s' denied request: %s", c.name, b.name, err)
	}
	m.denials = append(m.denials, denial{message, reason})
}

// policy evaluates a policy under all its bindings. An error ends the request. A criterion that cannot be evaluated
// counts as a failure and not as "does not match": a policy must not be skipped because its selector is broken. One
// wrong binding does not keep the others from being evaluated.
func (m *mutation) policy(ctx context.Context, c *candidate) error {
	misconfigured := func(b *binding, what string, err error) {
		m.fail(c, b, metav1.StatusReasonForbidden, fmt.Errorf("failed to configure %s: %w", what, err))
	}
	target, meets, err := c.criteria.meets(ctx, m.Request, &c.rules, nameOf(m.A))
	if err == nil && !meets {
		return nil
	}
	var from *parameters
	if err == nil {
		from, err = m.parameters(c.policy)
	}
	if err != nil {
		misconfigured(nil, "policy", err)
		return nil
	}
	for i := range c.bindings {
		b := &c.bindings[i]
		_, meets, err := b.criteria.meets(ctx, m.Request, &b.rules, nameOf(m.A))
		if err == nil && !meets {
			continue
		}
		if err != nil {
			misconfigured(b.binding, "binding", err)
			continue
		}
		for with, err := range from.find(ctx, m.Request, b.binding) {
			if err != nil {
				misconfigured(b.binding, "binding", err)
				break
			}
			// Reinvocation is decided for each of these: a binding that was not called in the first round is not called
			// in the second.
			id := c.name + "/" + b.name + "/" + with.name
			if m.A.Reinvoked() && !m.past.Again(id) {
				continue
			}
			if err := m.invoke(ctx, c, b.binding, target, with, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// invoke carries out a policy's mutations for one binding and parameter, up to the first that fails. What the mutations
// before the failure did stays in the object. If the policy ignores failures, the request goes on with that part. All
// mutations share one budget of CEL cost, so their number does not multiply the bound.
func (m *mutation) invoke(ctx context.Context, c *candidate, b *binding, target match.Target, with param,
	id string) error {
	e := evaluation{plugin: m.plugin, request: m.Request, policy: c.policy, target: target, param: with.content}
	meets, err := e.meets(ctx)
	if err != nil {
		m.fail(c, b, metav1.StatusReasonInvalid, err)
	}
	if err != nil || !meets {
		return nil
	}
	// Call comes before the mutations, so that a change by this policy itself marks it for the second round.
	if c.repeats {
		m.past.Call(id)
	}
	budget := expression.Budget(expression.PolicyBudget)
	for i, code := range c.compile(&m.Matcher.Compiler).mutations {
		begun := time.Now()
		changed, err := e.mutate(ctx, &c.mutations[i], &code, &budget)
		m.metrics.mutated(c.name, b.name, time.Since(begun), err)
		if changed {
			m.past.Outdate()
			m.A.Reinvoke()
		}
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			return err
		}
		if err != nil {
			m.fail(c, b, metav1.StatusReasonInvalid, err)
			return nil
		}
	}
	return nil
}

// mutate carries out one mutation. A Status error is not the policy's to ignore: the object cannot be what it made of
// it. It reads the variables for each mutation: the one before has replaced the object that they show.
func (e *evaluation) mutate(ctx context.Context, m *admissionregistrationv1.Mutation, code *code,
	budget *expression.Budget) (changed bool, err error) {
	view, err := e.request.As(ctx, e.target)
	if err != nil {
		return false, err
	}
	vars, err := e.variables(ctx, true)
	if err != nil {
		return false, err
	}
	v, err := code.evaluate(ctx, expression.NewEvaluation(vars), budget)
	if err != nil {
		return false, err
	}
	change := e.patch
	if m.PatchType == admissionregistrationv1.PatchTypeApplyConfiguration {
		change = e.apply
	}
	obj, err := change(ctx, v, view)
	if err != nil || obj == nil || apiequality.Semantic.DeepEqual(obj, view.Object.Converted) {
		return false, err
	}
	return true, e.request.Replace(ctx, view, obj)
}
