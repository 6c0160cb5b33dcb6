package access

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"bonsai/pkg/why"
)

// maxOthers bounds the accounts that are named beside the caller: more would help nobody.
const maxOthers = 3

// others are the ServiceAccounts of the caller's own namespace that may do what the caller, an account, may not: those
// that bindings name one by one, the narrowest role first. Somebody who made one for the purpose may have forgotten to
// use it.
func (q *inquiry) others(ctx context.Context, roles []role, bindings []binding) (causes []why.Cause) {
	rest, account := strings.CutPrefix(q.who, serviceAccounts)
	namespace, own, _ := strings.Cut(rest, ":")
	if !account {
		return nil
	}
	type other struct {
		name string
		by   binding
		role role
	}
	var list []other
	for _, b := range bindings {
		if b.object.Namespace != "" && b.object.Namespace != q.access.Namespace {
			continue
		}
		i := slices.IndexFunc(roles, func(r role) bool { return b.refersTo(r) })
		if i < 0 || !q.allowed(roles[i].rules) {
			continue
		}
		for _, s := range b.subjects {
			beside := cmp.Or(s.Namespace, b.object.Namespace) == namespace && s.Name != own
			if s.Kind == rbacv1.ServiceAccountKind && beside {
				list = append(list, other{s.Name, b, roles[i]})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b other) int {
		switch {
		case closer(a.role, b.role):
			return -1
		case closer(b.role, a.role):
			return 1
		}
		return 0
	})
	seen := map[string]bool{}
	for _, o := range list {
		if seen[o.name] || len(seen) == maxOthers {
			continue
		}
		seen[o.name] = true
		a, _ := why.Get[corev1.ServiceAccount](ctx, q.World, namespace, o.name)
		asked := q.access
		asked.User = serviceAccounts + namespace + ":" + o.name
		asked.Groups = implied(asked.User)
		if allowed, _, known := q.Allowed(ctx, asked); a == nil || known && !allowed {
			continue
		}
		causes = append(causes, why.Cause{Code: "OtherAccountMay",
			Text: fmt.Sprintf("The ServiceAccount %s of the same namespace may %s, by %s.", o.name, phrase(q.access),
				o.by.object),
			Evidence: []why.Evidence{why.See(why.ObjectOf("", "ServiceAccount", a), ".metadata.name", o.name),
				why.See(o.by.object, ".subjects", "ServiceAccount "+o.name),
				why.See(o.by.object, ".roleRef", o.by.ref.Kind+"/"+o.by.ref.Name)}})
	}
	return causes
}
