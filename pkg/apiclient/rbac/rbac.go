// Package rbac gives access to the kinds of rbac.authorization.k8s.io/v1 that components use.
package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"bonsai/pkg/apiclient"
)

// ClusterRoles gives access to clusterroles.
func ClusterRoles(c *apiclient.Client) *apiclient.Resource[*rbacv1.ClusterRole] {
	return apiclient.NewResource(c, rbacv1.SchemeGroupVersion, "clusterroles", &rbacv1.ClusterRole{})
}
