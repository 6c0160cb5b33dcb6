package oidc

import (
	"context"
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/apiserver/request"
)

// rules are the compiled expressions of a JWT. Programs are nil where the configuration names a claim or nothing.
type rules struct {
	username, groups, uid *expression.Program
	extra                 []*expression.Program // as ClaimMappings.Extra
	claims                []*expression.Program // as JWT.ClaimValidationRules
	users                 []*expression.Program // as JWT.UserValidationRules
}

// checkClaims fails if a rule about the claims does not hold.
func (i *issuer) checkClaims(ctx context.Context, c claims, v *expression.Evaluation, left *expression.Budget) error {
	for n, rule := range i.config.ClaimValidationRules {
		p := i.rules.claims[n]
		if p == nil {
			if err := c.require(rule.Claim, rule.RequiredValue); err != nil {
				return err
			}
			continue
		}
		if err := holds(ctx, p, rule.Expression, rule.Message, v, left); err != nil {
			return fmt.Errorf("oidc: error evaluating claim validation expression: %w", err)
		}
	}
	return nil
}

// checkUser fails if a rule about the user does not hold.
func (i *issuer) checkUser(ctx context.Context, u *request.User, left *expression.Budget) error {
	if len(i.rules.users) == 0 {
		return nil
	}
	v := expression.NewEvaluation(&expression.Variables{User: userVariable(u)})
	for n, rule := range i.config.UserValidationRules {
		if err := holds(ctx, i.rules.users[n], rule.Expression, rule.Message, v, left); err != nil {
			return fmt.Errorf("oidc: error evaluating user info validation rule: %w", err)
		}
	}
	return nil
}

func holds(ctx context.Context, p *expression.Program, text, message string, v *expression.Evaluation,
	left *expression.Budget) error {
	out, err := p.Evaluate(ctx, v, left)
	if err != nil {
		return err
	}
	if !expression.Holds(out) {
		if message == "" {
			return fmt.Errorf("validation expression '%s' failed", text)
		}
		return fmt.Errorf("validation expression '%s' failed: %s", text, message)
	}
	return nil
}

// userVariable is "user": a user without groups has no field "groups".
func userVariable(u *request.User) map[string]any {
	out := map[string]any{"username": u.Name}
	if u.UID != "" {
		out["uid"] = u.UID
	}
	if len(u.Groups) > 0 {
		out["groups"] = u.Groups
	}
	if len(u.Extra) > 0 {
		out["extra"] = u.Extra
	}
	return out
}

// text is what an expression that must be of type string evaluated to.
func text(v ref.Val) (string, error) {
	s, ok := v.(types.String)
	if !ok {
		return "", fmt.Errorf("the expression must evaluate to a string, got %v", v.Type())
	}
	return string(s), nil
}

// texts is what an expression of type string, list or null evaluated to. Empty texts are left out.
func texts(v ref.Val) ([]string, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.String:
		return appendText(nil, v)
	case traits.Lister:
		var out []string
		for it := v.Iterator(); it.HasNext() == types.True; {
			var err error
			if out, err = appendText(out, it.Next()); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("the expression must evaluate to a string or a list of strings, got %v", v.Type())
}

func appendText(out []string, v ref.Val) ([]string, error) {
	s, err := text(v)
	if err != nil || s == "" {
		return out, err
	}
	return append(out, s), nil
}
