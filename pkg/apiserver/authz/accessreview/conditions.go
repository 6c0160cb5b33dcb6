package accessreview

import (
	"context"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"bonsai/api/admissionregistration/expression"
)

// Conditions are compiled match conditions: a webhook is asked about a request if all of them hold.
type Conditions []*expression.Program

// budget is what all conditions of a webhook may cost for one request.
const budget = expression.MatchConditionsBudget

// matches reports whether the webhook is to be asked. A condition that is false decides; an error counts only if there
// is none.
func (a *Authorizer) matches(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	if len(a.cfg.Conditions) == 0 {
		return true, nil
	}
	start := time.Now()
	holds, err := a.cfg.Conditions.hold(ctx, spec)
	a.cfg.Metrics.matched(a.cfg.Name, time.Since(start), holds, err)
	return holds, err
}

func (c Conditions) hold(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	v := expression.NewEvaluation(&expression.Variables{Request: variable(spec)})
	left := expression.Budget(budget)
	var errs []error
	for _, p := range c {
		out, err := p.Evaluate(ctx, v, &left)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("cel evaluation error: %w", err))
			if errors.Is(err, expression.ErrBudget) || ctx.Err() != nil {
				return false, utilerrors.NewAggregate(errs)
			}
		case !expression.Holds(out):
			return false, nil
		}
	}
	return len(errs) == 0, utilerrors.NewAggregate(errs)
}

// variable is "request". Texts and lists are there even if they are empty, so that conditions need not ask.
func variable(s *authorizationv1.SubjectAccessReviewSpec) map[string]any {
	extra := map[string]any{}
	for k, v := range s.Extra {
		extra[k] = []string(v)
	}
	groups := s.Groups
	if groups == nil {
		groups = []string{}
	}
	out := map[string]any{"user": s.User, "groups": groups, "uid": s.UID, "extra": extra}
	if n := s.NonResourceAttributes; n != nil {
		out["nonResourceAttributes"] = map[string]any{"path": n.Path, "verb": n.Verb}
	}
	if r := s.ResourceAttributes; r != nil {
		attributes := map[string]any{"namespace": r.Namespace, "verb": r.Verb, "group": r.Group, "version": r.Version,
			"resource": r.Resource, "subresource": r.Subresource, "name": r.Name}
		if r.FieldSelector != nil {
			attributes["fieldSelector"] = selector(r.FieldSelector.Requirements,
				func(q metav1.FieldSelectorRequirement) (string, string, []string) {
					return q.Key, string(q.Operator), q.Values
				})
		}
		if r.LabelSelector != nil {
			attributes["labelSelector"] = selector(r.LabelSelector.Requirements,
				func(q metav1.LabelSelectorRequirement) (string, string, []string) {
					return q.Key, string(q.Operator), q.Values
				})
		}
		out["resourceAttributes"] = attributes
	}
	return out
}

func selector[T any](all []T, parts func(T) (key, operator string, values []string)) map[string]any {
	out := make([]any, len(all))
	for i, one := range all {
		key, operator, values := parts(one)
		if values == nil {
			values = []string{}
		}
		out[i] = map[string]any{"key": key, "operator": operator, "values": values}
	}
	return map[string]any{"requirements": out}
}
