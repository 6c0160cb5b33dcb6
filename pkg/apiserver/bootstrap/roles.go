package bootstrap

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// parallel is how many objects are written at once.
const parallel = 16

// policy makes the roles and bindings. To those that exist and are not opted out (annotation autoupdate=false) it adds
// the rules and subjects they lack; it takes nothing away.
func (b *Bootstrap) policy(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, want := range b.cfg.Policy.ClusterRoles {
		g.Go(func() error {
			return b.ensure(ctx, rbacv1.Resource("clusterroles"), want.DeepCopy(), fixClusterRole(want))
		})
	}
	for _, want := range b.cfg.Policy.Roles {
		g.Go(func() error { return b.ensure(ctx, rbacv1.Resource("roles"), want.DeepCopy(), fixRole(want)) })
	}
	for _, want := range b.cfg.Policy.ClusterRoleBindings {
		g.Go(func() error {
			return b.ensure(ctx, rbacv1.Resource("clusterrolebindings"), want.DeepCopy(), fixClusterRoleBinding(want))
		})
	}
	for _, want := range b.cfg.Policy.RoleBindings {
		g.Go(func() error {
			return b.ensure(ctx, rbacv1.Resource("rolebindings"), want.DeepCopy(), fixRoleBinding(want))
		})
	}
	return g.Wait()
}

func fixClusterRole(want *rbacv1.ClusterRole) func(runtime.Object) (bool, error) {
	return func(obj runtime.Object) (bool, error) {
		have, ok := obj.(*rbacv1.ClusterRole)
		if !ok {
			return false, fmt.Errorf("%T is not a ClusterRole", obj)
		}
		if optedOut(have) {
			return false, nil
		}
		changed := addLabels(&have.ObjectMeta, want.Labels)
		if want.AggregationRule != nil && have.AggregationRule == nil {
			have.AggregationRule, changed = want.AggregationRule.DeepCopy(), true
		}
		return addRules(&have.Rules, want.Rules) || changed, nil
	}
}

func fixRole(want *rbacv1.Role) func(runtime.Object) (bool, error) {
	return func(obj runtime.Object) (bool, error) {
		have, ok := obj.(*rbacv1.Role)
		if !ok {
			return false, fmt.Errorf("%T is not a Role", obj)
		}
		if optedOut(have) {
			return false, nil
		}
		changed := addLabels(&have.ObjectMeta, want.Labels)
		return addRules(&have.Rules, want.Rules) || changed, nil
	}
}

func fixClusterRoleBinding(want *rbacv1.ClusterRoleBinding) func(runtime.Object) (bool, error) {
	return func(obj runtime.Object) (bool, error) {
		have, ok := obj.(*rbacv1.ClusterRoleBinding)
		if !ok {
			return false, fmt.Errorf("%T is not a ClusterRoleBinding", obj)
		}
		if optedOut(have) {
			return false, nil
		}
		changed := addLabels(&have.ObjectMeta, want.Labels)
		return addSubjects(&have.Subjects, want.Subjects) || changed, nil
	}
}

func fixRoleBinding(want *rbacv1.RoleBinding) func(runtime.Object) (bool, error) {
	return func(obj runtime.Object) (bool, error) {
		have, ok := obj.(*rbacv1.RoleBinding)
		if !ok {
			return false, fmt.Errorf("%T is not a RoleBinding", obj)
		}
		if optedOut(have) {
			return false, nil
		}
		changed := addLabels(&have.ObjectMeta, want.Labels)
		return addSubjects(&have.Subjects, want.Subjects) || changed, nil
	}
}

func optedOut(m metav1.Object) bool {
	return m.GetAnnotations()[rbacv1.AutoUpdateAnnotationKey] == "false"
}

func addLabels(have *metav1.ObjectMeta, want map[string]string) (changed bool) {
	for k, v := range want {
		if _, ok := have.Labels[k]; !ok {
			if have.Labels == nil {
				have.Labels = map[string]string{}
			}
			have.Labels[k], changed = v, true
		}
	}
	return changed
}

func addRules(have *[]rbacv1.PolicyRule, want []rbacv1.PolicyRule) (changed bool) {
	covered, missing := validation.Covers(*have, want)
	if covered {
		return false
	}
	*have = append(*have, missing...)
	return true
}

func addSubjects(have *[]rbacv1.Subject, want []rbacv1.Subject) (changed bool) {
	for _, s := range want {
		if !slices.Contains(*have, s) {
			*have, changed = append(*have, s), true
		}
	}
	return changed
}
