package printers

import (
	"reflect"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestRuleRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules []rbacv1.PolicyRule
		want  [][4]string
	}{
		"verbs of the same resource are joined": {
			[]rbacv1.PolicyRule{
				{Verbs: []string{"watch"}, APIGroups: []string{""}, Resources: []string{"pods"}},
				{Verbs: []string{"get", "get"}, APIGroups: []string{""}, Resources: []string{"pods"}},
			},
			[][4]string{{"pods", "[]", "[]", "[watch get]"}},
		},
		"one row for each group, resource and name": {
			[]rbacv1.PolicyRule{{Verbs: []string{"get", "list"}, APIGroups: []string{"", "apps"},
				Resources: []string{"pods"}, ResourceNames: []string{"x", "y"}}},
			[][4]string{{"pods", "[]", "[x]", "[get list]"}, {"pods", "[]", "[y]", "[get list]"},
				{"pods.apps", "[]", "[x]", "[get list]"}, {"pods.apps", "[]", "[y]", "[get list]"}},
		},
		"one row for each URL and verb": {
			[]rbacv1.PolicyRule{{Verbs: []string{"get", "post"}, NonResourceURLs: []string{"/a", "/b"}}},
			[][4]string{{"", "[/a]", "[]", "[get]"}, {"", "[/b]", "[]", "[get]"}, {"", "[/a]", "[]", "[post]"},
				{"", "[/b]", "[]", "[post]"}},
		},
		"verbs first, subresources before their resource": {
			[]rbacv1.PolicyRule{
				{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods", "pods/log"}},
				{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"services"}},
			},
			[][4]string{{"services", "[]", "[]", "[create]"}, {"pods/log", "[]", "[]", "[get]"},
				{"pods", "[]", "[]", "[get]"}},
		},
		"the group stands before the subresource": {
			[]rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"apps"},
				Resources: []string{"deployments/scale"}}},
			[][4]string{{"deployments.apps/scale", "[]", "[]", "[get]"}},
		},
		"none": {nil, [][4]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := RuleRows(c.rules); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}
