package clusterrole

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// role has a label for each of labels ("to-admin" stands for "to-admin=true") and a rule for each of verbs.
func role(name, labels, verbs string) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, l := range strings.Fields(labels) {
		r.Labels[l] = "true"
	}
	for _, v := range strings.Fields(verbs) {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{Verbs: []string{v}})
	}
	return r
}

// aggregating takes its rules from the roles with any of the labels.
func aggregating(r *rbacv1.ClusterRole, labels ...string) *rbacv1.ClusterRole {
	r.AggregationRule = &rbacv1.AggregationRule{}
	for _, l := range labels {
		r.AggregationRule.ClusterRoleSelectors = append(r.AggregationRule.ClusterRoleSelectors,
			metav1.LabelSelector{MatchLabels: map[string]string{l: "true"}})
	}
	return r
}

func verbs(rules []rbacv1.PolicyRule) string {
	var out []string
	for _, r := range rules {
		out = append(out, strings.Join(r.Verbs, "+"))
	}
	return strings.Join(out, " ")
}

func TestCollect(t *testing.T) {
	t.Parallel()
	all := []*rbacv1.ClusterRole{
		role("z", "to-admin", "watch get"), role("a", "to-admin to-edit", "list"), role("b", "to-edit", "create get"),
		role("unlabelled", "", "escalate"), role("other-value", "", "bind"),
		aggregating(role("self", "to-admin", "impersonate"), "to-admin"),
	}
	all[4].Labels = map[string]string{"to-admin": "false"}
	for _, c := range []struct {
		name string
		role *rbacv1.ClusterRole
		want string
	}{
		{"by name of the role", aggregating(role("r", "", ""), "to-admin"), "list impersonate watch get"},
		{"never its own", all[5], "list watch get"},
		{"selector after selector, each rule once", aggregating(role("r", "", ""), "to-edit", "to-admin"),
			"list create get impersonate watch"},
		{"nobody matches", aggregating(role("r", "", ""), "to-nobody"), ""},
		{"no selectors", aggregating(role("r", "", "")), ""},
	} {
		rules, err := collect(c.role, all)
		if got := verbs(rules); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
	if all[0].Name != "z" {
		t.Error("the list of the cache was sorted in place")
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	const put = "PUT /apis/rbac.authorization.k8s.io/v1/clusterroles/r"
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "clusterroles"}, "r", errors.New("changed"))
	bad := aggregating(role("r", "", "get"))
	bad.AggregationRule.ClusterRoleSelectors = []metav1.LabelSelector{
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}
	for _, c := range []struct {
		name   string
		role   *rbacv1.ClusterRole
		answer error
		want   string // the verbs written, "-" if nothing is
		fails  bool
	}{
		{name: "rules are missing", role: aggregating(role("r", "", ""), "to-admin"), want: "list"},
		{name: "rules by hand are replaced", role: aggregating(role("r", "", "escalate"), "to-admin"), want: "list"},
		{name: "rules are as they should be", role: aggregating(role("r", "", "list"), "to-admin"), want: "-"},
		{name: "nobody gives any more", role: aggregating(role("r", "", "list"), "to-nobody"), want: ""},
		{name: "not aggregated", role: role("r", "", "list"), want: "-"},
		{name: "gone", want: "-"},
		{name: "changed meanwhile", role: aggregating(role("r", "", ""), "to-admin"), answer: conflict, want: "list",
			fails: true},
		{name: "unreadable selector takes no rule away", role: bad, want: "-", fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
				return call.Object, c.answer
			}}
			ctl, err := New(fake.Deps(t, time.Unix(0, 0)))
			if err != nil {
				t.Fatal(err)
			}
			controllertest.Put(t, ctl.roles, role("giver", "to-admin", "list"))
			var before []byte
			if c.role != nil {
				controllertest.Put(t, ctl.roles, c.role)
				if before, err = json.Marshal(c.role); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := ctl.Reconcile(t.Context(), controller.Key{Name: "r"}); (err != nil) != c.fails {
				t.Errorf("error %v", err)
			}
			calls := fake.Calls()
			if c.want == "-" {
				if len(calls) > 0 {
					t.Errorf("calls %v, want none", fake.Names())
				}
				return
			}
			if !slices.Equal(fake.Names(), []string{put}) {
				t.Fatalf("calls %v", fake.Names())
			}
			if got := verbs(calls[0].Object.(*rbacv1.ClusterRole).Rules); got != c.want {
				t.Errorf("wrote %q, want %q", got, c.want)
			}
			if after, err := json.Marshal(c.role); err != nil || string(after) != string(before) {
				t.Errorf("the object of the cache was changed to %s, %v", after, err)
			}
		})
	}
}
