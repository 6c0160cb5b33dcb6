package assemble

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/authz/always"
	"bonsai/pkg/apiserver/authz/node"
	"bonsai/pkg/apiserver/authz/rbac"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/health"
)

// authorization is everything about who may do what.
type authorization struct {
	authorizer authz.Authorizer
	rbac       *rbac.Authorizer // also without the RBAC mode, for reviews and escalation checks; runs only when in use
	// usesRBAC, usesNode and allowsAll tell which modes are in use.
	usesRBAC, usesNode, allowsAll bool

	runs []func(context.Context) error
	// informers are the modes that must hear of objects before they can decide.
	informers map[string]informer
}

// informer is something that hears of all objects of a kind.
type informer interface{ HasSynced() bool }

// informerSync is upstream's check of this name. It fails until every mode knows the objects that it decides by: until
// then the rights that they give are refused.
func (a *authorization) informerSync() health.Check {
	return health.Check{Name: "informer-sync", Run: func(*http.Request) error {
		for mode, i := range a.informers {
			if !i.HasSynced() {
				return fmt.Errorf("the authorization mode %s does not know all objects yet", mode)
			}
		}
		return nil
	}}
}

// newAuthorization builds the ordered union of the modes behind the group that may do everything.
func newAuthorization(modeNames []string, s *sources, nodeRules []rbacv1.PolicyRule, log *slog.Logger) (*authorization,
	error) {
	a := &authorization{rbac: rbac.New(rbac.Config{
		Roles: s.of(rbacv1.GroupName, "roles"), RoleBindings: s.of(rbacv1.GroupName, "rolebindings"),
		ClusterRoles:        s.of(rbacv1.GroupName, "clusterroles"),
		ClusterRoleBindings: s.of(rbacv1.GroupName, "clusterrolebindings"),
		Log:                 log,
	}), informers: map[string]informer{}}
	modes := []authz.Authorizer{authz.Privileged(request.GroupMasters)}
	for _, mode := range modeNames {
		switch mode {
		case "AlwaysAllow":
			a.allowsAll = true
			modes = append(modes, always.Allow{})
		case "AlwaysDeny":
			modes = append(modes, always.Deny{})
		case "Node":
			a.usesNode = true
			n := node.New(node.Config{Pods: s.of("", "pods"), Volumes: s.of("", "persistentvolumes"),
				Attachments: s.of(storagev1.GroupName, "volumeattachments"),
				Slices:      s.of(resourcev1.GroupName, "resourceslices"), Rules: nodeRules, Log: log})
			a.runs = append(a.runs, n.Run)
			a.informers[mode] = n
			modes = append(modes, n)
		case "RBAC":
			a.usesRBAC = true
			a.runs = append(a.runs, a.rbac.Run)
			a.informers[mode] = a.rbac
			modes = append(modes, a.rbac)
		}
	}
	a.authorizer = authz.Union(modes...)
	return a, s.missing
}
