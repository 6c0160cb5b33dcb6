// Package rbacescalation keeps people from giving more than they have: a role or a binding is refused if it grants a
// permission that its author lacks, unless he may "escalate" the role or "bind" it. It is always part of a server with
// RBAC and has no name in --enable-admission-plugins.
package rbacescalation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/auth/rbac/validation"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

// Resolver knows rules; *rbac.Authorizer is one.
type Resolver interface {
	// RulesFor returns every rule that user has in namespace; the rules are true even if there is an error.
	RulesFor(ctx context.Context, user *request.User, namespace string) ([]rbacv1.PolicyRule, error)
	// RoleRules returns the rules of the role that a binding in namespace refers to.
	RoleRules(ctx context.Context, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, bool)
}

// Config is what the plug-in needs.
type Config struct {
	Rules Resolver
	// Authorizer answers for the verbs escalate and bind.
	Authorizer authz.Authorizer
}

type plugin struct{ cfg Config }

// New returns the plug-in. Append it to the chain after those that Select chose.
func New(cfg Config) admission.Plugin {
	return admission.Plugin{Name: "RBACEscalation", Validator: plugin{cfg}}
}

// Validate implements admission.Validator. It runs as a validator, after all mutation: a webhook cannot add rules
// behind it. An update that leaves the rules alone passes, so that people without the permissions can still change
// labels.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Resource.Group != rbacv1.GroupName || a.Subresource != "" ||
		a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	if a.User == nil || a.User.InGroup(request.GroupMasters) {
		return nil
	}
	switch now := a.Object.(type) {
	case *rbacv1.Role:
		old, _ := a.OldObject.(*rbacv1.Role)
		if old != nil && equality.Semantic.DeepEqual(old.Rules, now.Rules) ||
			p.may(ctx, a, "escalate", a.Resource.Resource, now.Name, a.Namespace) {
			return nil
		}
		return p.covers(ctx, a, now.Rules)
	case *rbacv1.ClusterRole:
		return p.clusterRole(ctx, a, now)
	case *rbacv1.RoleBinding:
		old, _ := a.OldObject.(*rbacv1.RoleBinding)
		if old != nil && equality.Semantic.DeepEqual(old.Subjects, now.Subjects) && old.RoleRef == now.RoleRef {
			return nil
		}
		return p.binding(ctx, a, now.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		old, _ := a.OldObject.(*rbacv1.ClusterRoleBinding)
		if old != nil && equality.Semantic.DeepEqual(old.Subjects, now.Subjects) && old.RoleRef == now.RoleRef {
			return nil
		}
		return p.binding(ctx, a, now.RoleRef)
	}
	return nil
}

// clusterRole checks the rules and the aggregation rule of a ClusterRole. An aggregation rule can bring in any rule
// later, by labels, hence it needs everything.
func (p plugin) clusterRole(ctx context.Context, a *admission.Attributes, now *rbacv1.ClusterRole) error {
	old, _ := a.OldObject.(*rbacv1.ClusterRole)
	if old != nil && equality.Semantic.DeepEqual(old.Rules, now.Rules) &&
		equality.Semantic.DeepEqual(old.AggregationRule, now.AggregationRule) {
		return nil
	}
	if p.may(ctx, a, "escalate", a.Resource.Resource, now.Name, "") {
		return nil
	}
	if err := p.covers(ctx, a, now.Rules); err != nil {
		return err
	}
	if now.AggregationRule != nil &&
		(old == nil || !equality.Semantic.DeepEqual(old.AggregationRule, now.AggregationRule)) {
		everything := []rbacv1.PolicyRule{
			{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
			{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
		}
		if p.covers(ctx, a, everything) != nil {
			return admission.Forbid(a, "must have cluster-admin privileges to use the aggregationRule")
		}
	}
	return nil
}

func (p plugin) binding(ctx context.Context, a *admission.Attributes, ref rbacv1.RoleRef) error {
	resource, ns := strings.ToLower(ref.Kind)+"s", a.Namespace
	if p.may(ctx, a, "bind", resource, ref.Name, ns) {
		return nil
	}
	rules, ok := p.cfg.Rules.RoleRules(ctx, ref, ns)
	if !ok {
		return apierrors.NewNotFound(a.Resource.GroupResource(), ref.Name) // of the binding, as Kubernetes words it
	}
	return p.covers(ctx, a, rules)
}

// may asks for a verb on a role that is not an API verb.
func (p plugin) may(ctx context.Context, a *admission.Attributes, verb, resource, name, ns string) bool {
	d, _, _ := p.cfg.Authorizer.Authorize(ctx, authz.Attributes{User: a.User, Info: request.Info{
		IsResource: true, Verb: verb, APIGroup: rbacv1.GroupName, APIVersion: a.Resource.Version, Resource: resource,
		Name: name, Namespace: ns}})
	return d == authz.Allow
}

// covers refuses rules that the user does not have himself. Rules that could not be resolved count as not held, which
// is the safe direction; the message names them.
func (p plugin) covers(ctx context.Context, a *admission.Attributes, rules []rbacv1.PolicyRule) error {
	own, incomplete := p.cfg.Rules.RulesFor(ctx, a.User, a.Namespace)
	ok, missing := validation.Covers(own, rules)
	if ok {
		return nil
	}
	lines := describe(missing)
	msg := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		a.User.Name, a.User.Groups, strings.Join(lines, "\n"))
	if incomplete != nil {
		msg += fmt.Sprintf("; resolution errors: %v", []error{incomplete})
	}
	return admission.Forbid(a, "%s", msg)
}

// describe writes broken-down rules compactly, the verbs of the same objects together, one line each, sorted.
func describe(rules []rbacv1.PolicyRule) []string {
	verbs := map[string][]string{}
	for _, r := range rules {
		var parts []string
		for _, f := range []struct {
			name string
			list []string
		}{{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"ResourceNames", r.ResourceNames},
			{"NonResourceURLs", r.NonResourceURLs}} {
			if len(f.list) > 0 {
				parts = append(parts, fmt.Sprintf("%s:%q", f.name, f.list))
			}
		}
		k := strings.Join(parts, ", ")
		verbs[k] = append(verbs[k], r.Verbs...)
	}
	var lines []string
	for k, v := range verbs {
		lines = append(lines, fmt.Sprintf("{%s, Verbs:%q}", k, v))
	}
	slices.Sort(lines)
	return lines
}
