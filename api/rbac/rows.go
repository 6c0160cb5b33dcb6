// Package rbac defines the kinds of the API group rbac.authorization.k8s.io (v1): their rows, defaults,
// validation, strategies and table columns, as pure functions.
package rbac

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/resources"
)

// Rows returns the resources of the group.
func Rows() []resources.Row {
	return []resources.Row{clusterRoleBindingRow(), clusterRoleRow(), roleBindingRow(), roleRow()}
}

// validateName: any name that can stand in a URL's path, "system:node" among them.
func validateName(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// bindingColumns are those of both kinds of bindings; role describes the second.
func bindingColumns(role, kind string) []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		resources.NameColumn(),
		resources.Column("Role", strings.TrimSuffix(role, " This field is immutable.")),
		resources.AgeColumn(),
		resources.Wide(resources.Column("Users", "Users in the "+kind)),
		resources.Wide(resources.Column("Groups", "Groups in the "+kind)),
		resources.Wide(resources.Column("ServiceAccounts", "ServiceAccounts in the "+kind)),
	}
}

func bindingCells(m *metav1.ObjectMeta, ref rbacv1.RoleRef, subjects []rbacv1.Subject, now time.Time) []any {
	var users, groups, accounts []string
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			groups = append(groups, s.Name)
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, s.Namespace+"/"+s.Name)
		}
	}
	return []any{m.Name, ref.Kind + "/" + ref.Name, resources.Age(m.CreationTimestamp, now),
		strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", ")}
}
