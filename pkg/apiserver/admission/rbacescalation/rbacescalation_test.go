package rbacescalation

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

// world: everybody may get and list pods and whatever verbs says.
type world struct{ verbs string }

func (world) RulesFor(context.Context, *request.User, string) ([]rbacv1.PolicyRule, error) {
	return rules("", "pods", "get", "list"), nil
}

func (world) RoleRules(_ context.Context, ref rbacv1.RoleRef, _ string) ([]rbacv1.PolicyRule, bool) {
	switch ref.Name {
	case "small":
		return rules("", "pods", "get"), true
	case "big":
		return rules("", "secrets", "get"), true
	}
	return nil, false
}

func (w world) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	if strings.Contains(w.verbs, a.Verb) {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

func rules(group, resource string, verbs ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{group}, Resources: []string{resource}}}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	x := metav1.ObjectMeta{Name: "x"}
	role := func(r []rbacv1.PolicyRule) *rbacv1.Role { return &rbacv1.Role{ObjectMeta: x, Rules: r} }
	binding := func(name string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: x, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "bob"}}}
	}
	big := rules("apps", "deployments", "get", "list")
	for name, c := range map[string]struct {
		now, old runtime.Object
		verbs    string
		group    string
		err      string
	}{
		"less than one has": {now: role(rules("", "pods", "get"))},
		"more": {now: role(big),
			err: "roles.rbac.authorization.k8s.io \"x\" is forbidden: user \"alice\" (groups=[\"devs\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"apps\"], Resources:[\"deployments\"], Verbs:[\"get\" \"list\"]}"},
		"more, may escalate":     {now: role(big), verbs: "escalate"},
		"more, as administrator": {now: role(big), group: request.GroupMasters},
		"more, as it was":        {now: role(big), old: role(big)},
		"bind less":              {now: binding("small")},
		"bind more":              {now: binding("big"), err: "Resources:[\"secrets\"]"},
		"bind more, may bind":    {now: binding("big"), verbs: "bind"},
		"bind what is not there": {now: binding("nope"), err: "not found"},
		"leave a binding":        {now: binding("big"), old: binding("big")},
		"aggregate": {now: &rbacv1.ClusterRole{ObjectMeta: x, AggregationRule: &rbacv1.AggregationRule{}},
			err: "must have cluster-admin privileges"},
		"aggregate, may escalate": {now: &rbacv1.ClusterRole{ObjectMeta: x, AggregationRule: &rbacv1.AggregationRule{}},
			verbs: "escalate"},
	} {
		w := world{c.verbs}
		a := &admission.Attributes{Operation: admission.Create,
			Resource: rbacv1.SchemeGroupVersion.WithResource("roles"), Namespace: "ns", Object: c.now, OldObject: c.old,
			User: &request.User{Name: "alice", Groups: []string{"devs"}}}
		if c.group != "" {
			a.User.Groups = []string{c.group}
		}
		err := New(Config{Rules: w, Authorizer: w}).Validator.Validate(context.Background(), a)
		if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
