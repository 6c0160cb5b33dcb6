package policies

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/match"
)

// validator is the plug-in ValidatingAdmissionPolicy.
type validator struct{ *plugin }

// denial is why a request is refused.
type denial struct {
	message string
	reason  metav1.StatusReason
}

// outcome is what comes of a request. Parameters have no bound in number, so it keeps the first refusal alone.
type outcome struct {
	refused *denial // nil: it is not
	audit   remarks
}

func (o *outcome) deny(message string, reason metav1.StatusReason) {
	if o.refused == nil {
		o.refused = &denial{message, reason}
	}
}

// Validate implements admission.Validator. It evaluates all policies, so that the client gets all warnings. Of several
// refusals, the first in the order of policies, bindings, parameters and expressions counts.
func (p validator) Validate(ctx context.Context, a *admission.Attributes) error {
	all, err := p.concerned(ctx, a)
	if err != nil || len(all) == 0 {
		return err
	}
	r := p.Matcher.Request(a)
	var out outcome
	for i := range all {
		ctx, span := startSpan(ctx, "admission.policy.validate", all[i].name)
		p.policy(ctx, r, &all[i], &out)
		span.End()
	}
	out.audit.note(ctx)
	if err := ctx.Err(); err != nil { // what was not looked at to its end may not pass
		return err
	}
	first := out.refused
	if first == nil {
		return nil
	}
	refusal := forbidden(a, first.message)
	refusal.ErrStatus.Reason, refusal.ErrStatus.Code = first.reason, codeOf(first.reason)
	refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes,
		metav1.StatusCause{Message: first.message})
	return refusal
}

// leftOut is logged of a policy that ignores that it cannot be evaluated.
const leftOut = "a policy cannot be evaluated and is left out"

// policy evaluates a policy under all its bindings. One broken binding does not keep the others from being evaluated.
// The audit annotations of all bindings and parameters belong together.
func (p validator) policy(ctx context.Context, r *match.Request, c *candidate, out *outcome) {
	broken := func(b *binding, what string, err error) {
		if c.ignores {
			r.Warn(leftOut, "policy", c.name, err)
			return
		}
		out.deny(refusal(c.name, b)+"failed to configure "+what+": "+err.Error(), metav1.StatusReasonInvalid)
	}
	target, meets, err := c.criteria.meets(ctx, r, &c.rules, nameOf(r.A))
	if err != nil {
		broken(nil, "policy", err)
		return
	}
	if !meets {
		return
	}
	from, err := p.parameters(c.policy)
	if err != nil {
		broken(nil, "policy", err)
		return
	}
	said := &annotations{policy: c.name}
	out.audit.said = append(out.audit.said, said)
	for i := range c.bindings {
		b := &c.bindings[i]
		_, meets, err := b.criteria.meets(ctx, r, &b.rules, nameOf(r.A))
		if err == nil && !meets {
			continue
		}
		if err != nil {
			broken(b.binding, "binding", err)
			continue
		}
		for with, err := range from.find(ctx, r, b.binding) {
			if err != nil {
				broken(b.binding, "binding", err)
				break
			}
			e := evaluation{plugin: p.plugin, request: r, policy: c.policy, target: target, param: with.content}
			p.enforce(r, c.policy, b.binding, e.run(ctx, said), out)
		}
	}
}

// refusal is how the message of a denial begins.
func refusal(policy string, b *binding) string {
	if b == nil {
		return fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: ", policy)
	}
	return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: ", policy, b.name)
}

// decision is what came of one expression that did not pass.
type decision struct {
	validation int // its index; of no meaning for other expressions
	message    string
	reason     metav1.StatusReason
	err        error // that it could not be evaluated; nil: it evaluated to false
	took       time.Duration
	// always tells that it is denied whatever the binding's actions are: an audit annotation that cannot be made.
	always bool
}

// enforce does what the binding says is to be done about decisions. An evaluation that failed has no effect if the
// policy ignores failures. Warnings and audit entries do not refuse the request: only Deny does.
func (p validator) enforce(r *match.Request, policy *policy, b *binding, decisions []decision,
	out *outcome) {
	for i := range decisions {
		d := &decisions[i]
		if d.err != nil && policy.ignores {
			p.metrics.validated(policy.name, b.name, "allow", d.took, d.err)
			continue
		}
		actions := b.actions
		if d.always && !slices.Contains(actions, admissionregistrationv1.Deny) {
			actions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
		}
		for _, action := range actions {
			switch action {
			case admissionregistrationv1.Deny:
				p.metrics.validated(policy.name, b.name, "deny", d.took, d.err)
				out.deny(refusal(policy.name, b)+d.message, d.reason)
			case admissionregistrationv1.Warn:
				p.metrics.validated(policy.name, b.name, "warn", d.took, d.err)
				if r.A.Warn != nil {
					r.A.Warn(fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s",
						policy.name, b.name, d.message))
				}
			case admissionregistrationv1.Audit:
				p.metrics.validated(policy.name, b.name, "audit", d.took, d.err)
				out.audit.failed.add(policy, b, d)
			}
		}
	}
}
