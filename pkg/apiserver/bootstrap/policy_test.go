package bootstrap

import (
	"net/netip"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

func TestDefaultPolicy(t *testing.T) {
	t.Parallel()
	p, err := DefaultPolicy()
	if err != nil {
		t.Fatal(err)
	}
	everything := []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
	if ok, _ := validation.Covers(p.ClusterRoleRules("cluster-admin"), everything); !ok {
		t.Error("cluster-admin may not do everything")
	}
	for _, c := range []struct{ whole, part string }{{"admin", "edit"}, {"edit", "view"},
		{"view", "system:aggregate-to-view"}} {
		if ok, missing := validation.Covers(p.ClusterRoleRules(c.whole), p.ClusterRoleRules(c.part)); !ok ||
			p.ClusterRoleRules(c.part) == nil {
			t.Errorf("%s lacks %v of %s", c.whole, missing, c.part)
		}
	}
	if ok, _ := validation.Covers(p.ClusterRoleRules("view"),
		[]rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}}); ok {
		t.Error("view may read secrets")
	}
	for _, b := range p.ClusterRoleBindings {
		if p.ClusterRoleRules(b.RoleRef.Name) == nil {
			t.Errorf("binding %s: no role %s", b.Name, b.RoleRef.Name)
		}
		if b.Name == "system:node" && len(b.Subjects) != 0 {
			t.Error("nodes are authorized by the mode Node, not by this binding")
		}
	}
	for _, b := range p.RoleBindings {
		found := false
		for _, r := range p.Roles {
			found = found || r.Name == b.RoleRef.Name && r.Namespace == b.Namespace
		}
		if !found {
			t.Errorf("binding %s/%s: no role %s", b.Namespace, b.Name, b.RoleRef.Name)
		}
	}
}

func TestParsePolicyRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"role", "clusterrole a b", "thing x", "  get core pods", "clusterrole a\n  get core",
		"clusterrolebinding a clusterrole b\n  nobody x", "clusterrolebinding a clusterrole b\n  serviceaccount x"} {
		if _, err := parsePolicy(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestFirstAddress(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"10.96.0.0/16": "10.96.0.1", "10.96.7.3/16": "10.96.0.1",
		"fd00::/108": "fd00::1"} {
		if got := FirstAddress(netip.MustParsePrefix(in)).String(); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
