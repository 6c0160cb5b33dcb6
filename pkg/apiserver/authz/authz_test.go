package authz

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"bonsai/pkg/apiserver/request"
)

type answer struct {
	d      Decision
	reason string
	err    error
}

func (a answer) Authorize(context.Context, Attributes) (Decision, string, error) {
	return a.d, a.reason, a.err
}

func TestUnion(t *testing.T) {
	t.Parallel()
	no := answer{reason: "no"}
	for name, c := range map[string]struct {
		list   []Authorizer
		d      Decision
		reason string
	}{
		"the first allow": {[]Authorizer{no, answer{Allow, "yes", nil}, answer{Deny, "never", nil}}, Allow,
			"yes"},
		"the first deny":        {[]Authorizer{answer{Deny, "never", nil}, answer{Allow, "yes", nil}}, Deny, "never"},
		"an error is not fatal": {[]Authorizer{answer{err: errors.New("x")}, answer{Allow, "yes", nil}}, Allow, "yes"},
		"all reasons":           {[]Authorizer{no, answer{reason: "nor I"}}, NoOpinion, "no\nnor I"},
		"nobody":                {nil, NoOpinion, ""},
	} {
		if d, reason, _ := Union(c.list...).Authorize(context.Background(), Attributes{}); d != c.d ||
			reason != c.reason {
			t.Errorf("%s: got %v %q", name, d, reason)
		}
	}
}

// The messages are what kube-apiserver v1.36 answers.
func TestForbidden(t *testing.T) {
	t.Parallel()
	u := &request.User{Name: "alice"}
	for _, c := range []struct {
		info   request.Info
		reason string
		want   string
	}{
		{request.Info{IsResource: true, Verb: "list", Resource: "pods", Namespace: "default"}, "",
			`pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "default"`},
		{request.Info{IsResource: true, Verb: "get", Resource: "nodes", Name: "n2"}, "why",
			`nodes "n2" is forbidden: User "alice" cannot get resource "nodes" in API group "" at the cluster scope: why`},
		{request.Info{IsResource: true, Verb: "create", APIGroup: "apps", Resource: "deployments", Subresource: "scale",
			Name: "d", Namespace: "x"}, "",
			`deployments.apps "d" is forbidden: User "alice" cannot create resource "deployments/scale" in API group "apps" in the namespace "x"`},
		{request.Info{Verb: "get", Path: "/metrics"}, "", `forbidden: User "alice" cannot get path "/metrics"`},
	} {
		if got := Forbidden(Attributes{u, c.info}, c.reason).Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestRuleAllows(t *testing.T) {
	t.Parallel()
	res := func(verb, group, resource, sub, name string) request.Info {
		return request.Info{IsResource: true, Verb: verb, APIGroup: group, Resource: resource, Subresource: sub,
			Name: name}
	}
	pods := rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{""},
		Resources: []string{"pods", "*/scale", "pods/log"}}
	named := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"},
		ResourceNames: []string{"a"}}
	paths := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/api", "/apis/*"}}
	for _, c := range []struct {
		rule rbacv1.PolicyRule
		info request.Info
		want bool
	}{
		{pods, res("get", "", "pods", "", "x"), true},
		{pods, res("create", "", "pods", "", "x"), false},
		{pods, res("get", "apps", "pods", "", "x"), false},
		{pods, res("get", "", "pods", "log", "x"), true},
		{pods, res("get", "", "pods", "exec", "x"), false},
		{pods, res("get", "", "things", "scale", "x"), true},
		{pods, res("get", "", "scale", "", "x"), false},
		{pods, request.Info{Verb: "get", Path: "/api"}, false},
		{named, res("delete", "apps", "x", "y", "a"), true},
		{named, res("delete", "apps", "x", "y", "b"), false},
		{named, res("list", "apps", "x", "", ""), false},
		{paths, request.Info{Verb: "get", Path: "/api"}, true},
		{paths, request.Info{Verb: "get", Path: "/apis/apps/v1"}, true},
		{paths, request.Info{Verb: "get", Path: "/apis"}, false},
		{paths, request.Info{Verb: "post", Path: "/api"}, false},
		{paths, res("get", "", "pods", "", ""), false},
	} {
		if got := RuleAllows(&c.rule, &Attributes{Info: c.info}); got != c.want {
			t.Errorf("%+v: got %v", c.info, got)
		}
	}
}

// TestCounted: what an authorizer allows and denies counts, under its type and name.
func TestCounted(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := NewMetrics(r)
	for _, a := range []answer{{d: Allow}, {d: Allow}, {d: Deny}, {d: NoOpinion}} {
		if d, _, _ := m.Counted("RBAC", "rbac", a).Authorize(t.Context(), Attributes{}); d != a.d {
			t.Errorf("got %v, want %v", d, a.d)
		}
	}
	all, err := r.Gather()
	if err != nil || len(all) != 1 || all[0].GetName() != "apiserver_authorization_decisions_total" {
		t.Fatalf("%v: %v", all, err)
	}
	got := map[string]float64{}
	for _, one := range all[0].GetMetric() {
		labels := ""
		for _, l := range one.GetLabel() {
			labels += l.GetName() + "=" + l.GetValue() + " "
		}
		got[labels] = one.GetCounter().GetValue()
	}
	if want := map[string]float64{"decision=allowed name=rbac type=RBAC ": 2,
		"decision=denied name=rbac type=RBAC ": 1}; !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// lister lists what it is.
type lister authorizationv1.SubjectRulesReviewStatus

func (l lister) ReviewRules(context.Context, *request.User, string) authorizationv1.SubjectRulesReviewStatus {
	return authorizationv1.SubjectRulesReviewStatus(l)
}

// TestLists: the rules of all modes, with what any of them does not say.
func TestLists(t *testing.T) {
	t.Parallel()
	rule := authorizationv1.ResourceRule{Verbs: []string{"get"}}
	one, two := lister{ResourceRules: []authorizationv1.ResourceRule{rule}}, lister{Incomplete: true,
		EvaluationError: "a"}
	got := Lists(one, two, one, lister{EvaluationError: "b"}).ReviewRules(t.Context(), nil, "")
	if len(got.ResourceRules) != 2 || !got.Incomplete || got.EvaluationError != "[a, b]" {
		t.Errorf("%+v", got)
	}
	if got := Lists(one).ReviewRules(t.Context(), nil, ""); got.Incomplete || got.EvaluationError != "" {
		t.Errorf("%+v", got)
	}
}

// BenchmarkUnion: a request that the last of three modes allows, with and without metrics.
func BenchmarkUnion(b *testing.B) {
	for name, m := range map[string]*Metrics{"plain": nil, "counted": NewMetrics(prometheus.NewRegistry())} {
		b.Run(name, func(b *testing.B) {
			u := Union(Privileged(request.GroupMasters), m.Counted("Node", "node", answer{}),
				m.Counted("RBAC", "rbac", answer{d: Allow}))
			at := Attributes{User: &request.User{Name: "jane", Groups: []string{request.GroupAuthenticated}}}
			b.ReportAllocs()
			for b.Loop() {
				if d, _, _ := u.Authorize(b.Context(), at); d != Allow {
					b.Fatal(d)
				}
			}
		})
	}
}

// TestNamed: reasons for no opinion have a name before them, as a kube-apiserver v1.37.2 says them.
func TestNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		says answer
		want string
	}{
		{answer{reason: "no"}, "node: no"}, {answer{}, ""}, {answer{d: Allow, reason: "yes"}, "yes"},
		{answer{d: Deny, reason: "never"}, "never"},
	} {
		if d, reason, _ := Named("node", c.says).Authorize(t.Context(), Attributes{}); d != c.says.d ||
			reason != c.want {
			t.Errorf("%+v: %v %q", c.says, d, reason)
		}
	}
}
