package access

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"bonsai/pkg/why"
)

// RoleBinding explains a RoleBinding that gives nothing, or gives it to nobody.
func RoleBinding(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	b, known := why.Get[rbacv1.RoleBinding](ctx, c.World, o.Namespace, o.Name)
	if b == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	return bound(ctx, c, binding{why.ObjectOf(rbacv1.GroupName, "RoleBinding", b), b.RoleRef, b.Subjects})
}

// ClusterRoleBinding explains a ClusterRoleBinding.
func ClusterRoleBinding(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	b, known := why.Get[rbacv1.ClusterRoleBinding](ctx, c.World, "", o.Name)
	if b == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	return bound(ctx, c, binding{why.ObjectOf(rbacv1.GroupName, "ClusterRoleBinding", b), b.RoleRef, b.Subjects})
}

func bound(ctx context.Context, c *why.Case, b binding) (why.Answer, error) {
	a := why.Answer{Subject: b.object}
	r, known := referred(ctx, c, b)
	switch {
	case r == nil && known:
		a.Causes = append(a.Causes, why.Cause{Code: "RoleMissing",
			Text: fmt.Sprintf("It refers to the %s %s, which does not exist: it gives nothing. A roleRef cannot be changed.",
				b.ref.Kind, b.ref.Name),
			Evidence: []why.Evidence{why.See(b.object, ".roleRef", b.ref.Kind+"/"+b.ref.Name),
				why.Absent(b.ref.Kind, b.object.Namespace, b.ref.Name)},
			Fixes: []why.Fix{{Text: "Create that role, or make the binding again with one that exists."}}})
	case r != nil && len(r.rules) == 0:
		a.Causes = append(a.Causes, why.Cause{Code: "RoleEmpty",
			Text:     fmt.Sprintf("%s, which it refers to, has no rules%s.", r.object, aggregated(*r)),
			Evidence: []why.Evidence{why.See(r.object, ".rules", "empty")}})
	}
	if len(b.subjects) == 0 {
		a.Causes = append(a.Causes, why.Cause{Code: "NoSubjects", Text: "It names nobody: it gives nothing to anybody.",
			Evidence: []why.Evidence{why.See(b.object, ".subjects", "empty")}})
	}
	for i, s := range b.subjects {
		if s.Kind != rbacv1.ServiceAccountKind {
			continue
		}
		namespace := cmp.Or(s.Namespace, b.object.Namespace)
		account, known := why.Get[corev1.ServiceAccount](ctx, c.World, namespace, s.Name)
		if account == nil && known {
			a.Causes = append(a.Causes, why.Cause{Code: "SubjectMissing",
				Text: fmt.Sprintf("It names the ServiceAccount %s of namespace %s, which does not exist.", s.Name, namespace),
				Evidence: []why.Evidence{why.See(b.object, fmt.Sprintf(".subjects[%d]", i), namespace+"/"+s.Name),
					why.Absent("ServiceAccount", namespace, s.Name)}})
		}
	}
	if a.Well = len(a.Causes) == 0; a.Well {
		a.State = fmt.Sprintf("%s gives %s %s to %s.", b.object, b.ref.Kind, b.ref.Name,
			why.Count(len(b.subjects), "subject"))
	} else {
		a.State = fmt.Sprintf("%s does not give what it says.", b.object)
	}
	return a, nil
}

// referred returns the role of a binding.
func referred(ctx context.Context, c *why.Case, b binding) (*role, bool) {
	if b.ref.Kind == "Role" {
		r, known := why.Get[rbacv1.Role](ctx, c.World, b.object.Namespace, b.ref.Name)
		if r == nil {
			return nil, known
		}
		return &role{why.ObjectOf(rbacv1.GroupName, "Role", r), r.Rules, false}, true
	}
	r, known := why.Get[rbacv1.ClusterRole](ctx, c.World, "", b.ref.Name)
	if r == nil {
		return nil, known
	}
	return &role{why.ObjectOf(rbacv1.GroupName, "ClusterRole", r), r.Rules, r.AggregationRule != nil}, true
}
