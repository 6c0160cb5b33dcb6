package rbac

import (
	"context"
	"log/slog"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage/follow"
)

// world is an Authorizer whose index the test fills by hand.
type world struct {
	*Authorizer
	roles, clusterRoles       roleHandler
	bindings, clusterBindings bindingHandler
}

func newWorld() *world {
	res := func(name string) follow.Resource { return follow.Resource{Prefix: "/registry/" + name + "/"} }
	a := New(Config{Roles: res("roles"), ClusterRoles: res("clusterroles"), RoleBindings: res("rolebindings"),
		ClusterRoleBindings: res("clusterrolebindings"), Log: slog.New(slog.DiscardHandler)})
	a.followers = nil // nothing to wait for
	return &world{a, roleHandler{a.index, "/registry/roles/"}, roleHandler{a.index, "/registry/clusterroles/"},
		bindingHandler{a.index, "/registry/rolebindings/"}, bindingHandler{a.index, "/registry/clusterrolebindings/"}}
}

func rules(verb, resource string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{resource}}}
}

func (w *world) bind(ns, name, roleKind, role string, subjects ...rbacv1.Subject) {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: roleKind, Name: role}
	if ns == "" {
		w.clusterBindings.Put("/registry/clusterrolebindings/"+name,
			&rbacv1.ClusterRoleBinding{RoleRef: ref, Subjects: subjects})
		return
	}
	w.bindings.Put("/registry/rolebindings/"+ns+"/"+name,
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns}, RoleRef: ref, Subjects: subjects})
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	w := newWorld()
	alice := rbacv1.Subject{Kind: "User", Name: "alice"}
	w.clusterRoles.Put("/registry/clusterroles/reader", &rbacv1.ClusterRole{Rules: rules("get", "pods")})
	w.roles.Put("/registry/roles/a/reader", &rbacv1.Role{Rules: rules("get", "secrets")})
	w.bind("", "all", "ClusterRole", "reader", rbacv1.Subject{Kind: "Group", Name: "devs"})
	w.bind("a", "one", "Role", "reader", alice, rbacv1.Subject{Kind: "ServiceAccount", Name: "bot"})
	w.bind("b", "two", "ClusterRole", "reader", alice)
	w.bind("b", "lost", "Role", "nope", alice)
	for name, c := range map[string]struct {
		user     request.User
		ns, what string
		want     bool
		reason   string
	}{
		"by a group, everywhere": {request.User{Name: "x", Groups: []string{"devs"}}, "zzz", "pods", true,
			`RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "reader" to Group "devs"`},
		"by a group, at cluster": {request.User{Name: "x", Groups: []string{"devs"}}, "", "pods", true,
			`RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "reader" to Group "devs"`},
		"a user is not a group": {request.User{Name: "devs"}, "zzz", "pods", false, ""},
		"by a role": {request.User{Name: "alice"}, "a", "secrets", true,
			`RBAC: allowed by RoleBinding "one/a" of Role "reader" to User "alice"`},
		"not in another namespace": {request.User{Name: "alice"}, "c", "secrets", false, ""},
		"a cluster role in one place": {request.User{Name: "alice"}, "b", "pods", true,
			`RBAC: allowed by RoleBinding "two/b" of ClusterRole "reader" to User "alice"`},
		"a binding's own namespace": {request.User{Name: "system:serviceaccount:a:bot"}, "a", "secrets", true,
			`RBAC: allowed by RoleBinding "one/a" of Role "reader" to ServiceAccount "bot/a"`},
		"another's service account": {request.User{Name: "system:serviceaccount:b:bot"}, "a", "secrets", false, ""},
		"a role that is not there": {request.User{Name: "alice"}, "b", "secrets", false,
			`RBAC: role.rbac.authorization.k8s.io "nope" not found`},
	} {
		d, reason, err := w.Authorize(context.Background(),
			authz.Attributes{User: &c.user,
				Info: request.Info{IsResource: true, Verb: "get", Resource: c.what, Namespace: c.ns, Name: "n"}})
		if (d == authz.Allow) != c.want || d == authz.Deny || reason != c.reason || err != nil {
			t.Errorf("%s: got %v %q %v", name, d, reason, err)
		}
	}
	status := w.ReviewRules(context.Background(), &request.User{Name: "alice"}, "b")
	if len(status.ResourceRules) != 1 || !status.Incomplete {
		t.Errorf("got %+v", status)
	}
}

// What is taken away stops counting at once, and nothing is left in the index.
func TestIndexForgets(t *testing.T) {
	t.Parallel()
	w := newWorld()
	alice := rbacv1.Subject{Kind: "User", Name: "alice"}
	w.clusterRoles.Put("/registry/clusterroles/r", &rbacv1.ClusterRole{Rules: rules("get", "pods")})
	may := func() bool {
		d, _, _ := w.Authorize(context.Background(),
			authz.Attributes{User: &request.User{Name: "alice"},
				Info: request.Info{IsResource: true, Verb: "get", Resource: "pods", Namespace: "a"}})
		return d == authz.Allow
	}
	steps := []struct {
		do   func()
		want bool
	}{
		{func() { w.bind("a", "b", "ClusterRole", "r", alice, alice) }, true},
		{func() { w.bind("a", "b", "ClusterRole", "r", rbacv1.Subject{Kind: "User", Name: "bob"}) }, false},
		{func() { w.bind("", "c", "ClusterRole", "r", alice) }, true},
		{func() { w.clusterRoles.Delete("/registry/clusterroles/r") }, false},
		{func() {
			w.clusterRoles.Put("/registry/clusterroles/r", &rbacv1.ClusterRole{Rules: rules("get", "pods")})
		}, true},
		{func() { w.clusterBindings.Delete("/registry/clusterrolebindings/c") }, false},
		{func() { w.bindings.Delete("/registry/rolebindings/a/b") }, false},
	}
	for i, s := range steps {
		if s.do(); may() != s.want {
			t.Errorf("step %d: got %v", i, !s.want)
		}
	}
	if len(w.index.bySubject) != 0 || len(w.index.bindings) != 0 {
		t.Errorf("left over: %v %v", w.index.bySubject, w.index.bindings)
	}
}

func TestKnows(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.roles.Put("/registry/roles/a/r", &rbacv1.Role{})
	w.bind("", "b", "ClusterRole", "x")
	n := func(ns, name string) types.NamespacedName { return types.NamespacedName{Namespace: ns, Name: name} }
	for _, c := range []struct {
		role, binding types.NamespacedName
		want          bool
	}{{n("a", "r"), n("", "b"), true}, {n("a", "r"), n("", ""), true}, {n("", "r"), n("", "b"), false},
		{n("", ""), n("a", "b"), false}} {
		if got := w.Knows(c.role, c.binding); got != c.want {
			t.Errorf("%v and %v: %t", c.role, c.binding, got)
		}
	}
}
