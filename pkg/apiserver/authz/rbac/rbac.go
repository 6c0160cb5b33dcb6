// Package rbac authorizes by Roles, ClusterRoles and their bindings. It keeps them in an index by subject, fed by
// watches on storage: an answer reads only what is bound to the caller and his groups.
package rbac

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage/follow"
)

// Config says where the four resources are.
type Config struct {
	Roles, RoleBindings, ClusterRoles, ClusterRoleBindings follow.Resource
	Log                                                    *slog.Logger
}

// Authorizer is the mode RBAC. It never denies.
type Authorizer struct {
	index     *index
	followers []*follow.Follower
}

var _ authz.Authorizer = (*Authorizer)(nil)

// New returns an Authorizer that knows no role yet; Run fills it.
func New(cfg Config) *Authorizer {
	i := newIndex()
	a := &Authorizer{index: i}
	for _, r := range []follow.Resource{cfg.Roles, cfg.ClusterRoles} {
		a.followers = append(a.followers, follow.New(r, roleHandler{i, r.Prefix}, cfg.Log))
	}
	for _, r := range []follow.Resource{cfg.RoleBindings, cfg.ClusterRoleBindings} {
		a.followers = append(a.followers, follow.New(r, bindingHandler{i, r.Prefix}, cfg.Log))
	}
	return a
}

// Run keeps the index fresh until ctx ends.
func (a *Authorizer) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, f := range a.followers {
		g.Go(func() error { return f.Run(ctx) })
	}
	return g.Wait()
}

// WaitSynced returns when all that was there when Run started is known, or ctx ends.
func (a *Authorizer) WaitSynced(ctx context.Context) error {
	for _, f := range a.followers {
		select {
		case <-f.Synced():
		case <-ctx.Done():
			return fmt.Errorf("waiting for the roles and bindings: %w", ctx.Err())
		}
	}
	return nil
}

// HasSynced reports whether WaitSynced would return at once.
func (a *Authorizer) HasSynced() bool {
	return !slices.ContainsFunc(a.followers, func(f *follow.Follower) bool { return !f.HasSynced() })
}

// Knows reports whether the index has a role and a binding of these namespaces and names; "" is the namespace of
// ClusterRoles and ClusterRoleBindings, and an empty name asks nothing.
func (a *Authorizer) Knows(role, binding types.NamespacedName) bool {
	return a.index.knows(role, binding)
}

// Authorize implements authz.Authorizer. Before the first sync it waits. Otherwise a server that just started would
// refuse everybody. A missing role is part of the reason only if nothing else allows the request.
func (a *Authorizer) Authorize(ctx context.Context, at authz.Attributes) (authz.Decision, string, error) {
	if at.User == nil {
		return authz.NoOpinion, "", nil
	}
	if err := a.WaitSynced(ctx); err != nil {
		return authz.NoOpinion, "", err
	}
	var by *grant
	var to subject
	missing := a.index.visit(at.User, at.Namespace, func(g *grant, s subject, r *rbacv1.PolicyRule) bool {
		if !authz.RuleAllows(r, &at) {
			return true
		}
		by, to = g, s
		return false
	})
	if by != nil {
		return authz.Allow, allowedBy(by, to), nil
	}
	if err := errors.Join(missing...); err != nil {
		return authz.NoOpinion, fmt.Sprintf("RBAC: %v", err), nil
	}
	return authz.NoOpinion, "", nil
}

func allowedBy(g *grant, s subject) string {
	kind, n := "ClusterRoleBinding", g.binding.name
	if g.binding.namespace != "" {
		kind, n = "RoleBinding", g.binding.name+"/"+g.binding.namespace
	}
	if g.accounts[s] {
		ns, account, _ := strings.Cut(strings.TrimPrefix(s.name, request.ServiceAccountPrefix), ":")
		s = subject{rbacv1.ServiceAccountKind, account + "/" + ns}
	}
	return fmt.Sprintf("RBAC: allowed by %s %q of %s %q to %s %q", kind, n, g.role.Kind, g.role.Name, s.kind, s.name)
}

// RulesFor returns every rule that user has in namespace, cluster-wide ones with them. The error names roles that are
// bound and not there; the rules are then incomplete, and still true.
func (a *Authorizer) RulesFor(ctx context.Context, user *request.User, namespace string) ([]rbacv1.PolicyRule, error) {
	if err := a.WaitSynced(ctx); err != nil {
		return nil, err
	}
	var rules []rbacv1.PolicyRule
	missing := a.index.visit(user, namespace, func(_ *grant, _ subject, r *rbacv1.PolicyRule) bool {
		rules = append(rules, *r.DeepCopy())
		return true
	})
	return rules, errors.Join(missing...)
}

// RoleRules returns the rules of the role that a binding in namespace refers to; false if there is no such role.
func (a *Authorizer) RoleRules(ctx context.Context, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, bool) {
	if a.WaitSynced(ctx) != nil {
		return nil, false
	}
	n := name{name: ref.Name}
	if ref.Kind == "Role" {
		n.namespace = namespace
	}
	a.index.mu.RLock()
	defer a.index.mu.RUnlock()
	rules, ok := a.index.roles[n]
	return rules, ok
}
