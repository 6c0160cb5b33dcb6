package fairness

import (
	"fmt"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"bonsai/api/flowcontrol"
	"bonsai/pkg/apiserver/request"
)

// compiled is a classifier of schemas that all go to a level of the name that they say.
func compiled(all []flowcontrolv1.FlowSchema) *classifier {
	var objects []*flowcontrolv1.FlowSchema
	for i := range all {
		objects = append(objects, &all[i])
	}
	find := func(f *flowcontrolv1.FlowSchema) *schema {
		if f.Spec.PriorityLevelConfiguration.Name == "missing" {
			return nil
		}
		s := &schema{name: f.Name}
		if m := f.Spec.DistinguisherMethod; m != nil {
			s.method = m.Type
		}
		return s
	}
	return compile(objects, find, &schema{name: "rest"})
}

func user(name string, groups ...string) *request.User {
	return &request.User{Name: name, Groups: append(groups, request.GroupAuthenticated)}
}

func account(ns, name string) *request.User {
	return user("system:serviceaccount:"+ns+":"+name, request.GroupServiceAccounts, request.GroupServiceAccounts+":"+ns)
}

func path(verb, p string) *request.Info { return &request.Info{Verb: verb, Path: p} }

func ask(verb, group, resource, sub, ns string) *request.Info {
	return &request.Info{IsResource: true, Verb: verb, APIGroup: group, Resource: resource, Subresource: sub,
		Namespace: ns}
}

// Where requests go by the objects of an empty cluster.
func TestClassifyByDefault(t *testing.T) {
	t.Parallel()
	s := compiled(append(flowcontrol.MandatorySchemas(), flowcontrol.SuggestedSchemas()...))
	node := user("system:node:a", request.GroupNodes)
	pods, lease := ask("list", "", "pods", "", "a"), ask("update", "coordination.k8s.io", "leases", "", "kube-system")
	for _, c := range []struct {
		user *request.User
		info *request.Info
		want string
		flow string
	}{
		{user("root", request.GroupMasters), pods, "exempt", ""},
		{user("bob"), path("get", "/livez"), "probes", ""},
		{user("bob"), path("post", "/livez"), "global-default", "bob"},
		{user("bob"), path("get", "/livez/ping"), "global-default", "bob"},
		{user("bob"), pods, "global-default", "bob"},
		{&request.User{Name: request.AnonymousUser, Groups: []string{request.GroupUnauthenticated}},
			path("get", "/version"), "global-default", request.AnonymousUser},
		{user("system:kube-scheduler"), lease, "system-leader-election", "system:kube-scheduler"},
		{user("system:kube-scheduler"), ask("watch", "coordination.k8s.io", "leases", "", "kube-system"),
			"kube-scheduler", "kube-system"},
		{user("system:kube-controller-manager"), pods, "kube-controller-manager", "a"},
		{account("kube-system", "x"), lease, "system-leader-election", "system:serviceaccount:kube-system:x"},
		{account("kube-system", "x"), pods, "kube-system-service-accounts", "a"},
		{account("other", "x"), pods, "service-accounts", "system:serviceaccount:other:x"},
		{node, ask("patch", "", "nodes", "status", ""), "system-node-high", "system:node:a"},
		{node, ask("get", "", "nodes", "proxy", ""), "system-nodes", "system:node:a"},
		{node, ask("update", "coordination.k8s.io", "leases", "", "kube-node-lease"), "system-node-high",
			"system:node:a"},
		{node, pods, "system-nodes", "system:node:a"},
		{&request.User{Name: "nobody's"}, pods, "rest", ""},
	} {
		got := s.classify(c.user, c.info)
		if flow := got.flow(c.user, c.info); got.name != c.want || flow != c.flow {
			t.Errorf("%s %s %s%s: %s, flow %q; want %s, %q", c.user.Name, c.info.Verb, c.info.Path, c.info.Resource,
				got.name, flow, c.want, c.flow)
		}
	}
}

// Rules, as the API describes them.
func TestClassifyRules(t *testing.T) {
	t.Parallel()
	one := func(name string, precedence int32, level string,
		r flowcontrolv1.PolicyRulesWithSubjects) flowcontrolv1.FlowSchema {
		f := flowcontrolv1.FlowSchema{}
		f.Name, f.Spec.MatchingPrecedence, f.Spec.PriorityLevelConfiguration.Name = name, precedence, level
		f.Spec.Rules = []flowcontrolv1.PolicyRulesWithSubjects{r}
		return f
	}
	everybody := []flowcontrolv1.Subject{
		{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: "*"}}}
	resources := func(verbs, groups, names []string, scope bool,
		namespaces ...string) flowcontrolv1.PolicyRulesWithSubjects {
		return flowcontrolv1.PolicyRulesWithSubjects{Subjects: everybody,
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{
				{Verbs: verbs, APIGroups: groups, Resources: names, ClusterScope: scope, Namespaces: namespaces}}}
	}
	paths := func(list ...string) flowcontrolv1.PolicyRulesWithSubjects {
		return flowcontrolv1.PolicyRulesWithSubjects{Subjects: everybody,
			NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"get"}, NonResourceURLs: list}}}
	}
	any := []string{"*"}
	many := []string{"pods/log"}
	long := []string{"/a/*"}
	for i := range 2 * longList {
		many, long = append(many, fmt.Sprintf("kind%d", i)), append(long, fmt.Sprintf("/path%d", i))
	}
	s := compiled([]flowcontrolv1.FlowSchema{
		one("late", 20, "l", resources(any, any, any, true, "*")),
		one("b", 5, "l", resources([]string{"get"}, []string{""}, []string{"pods"}, false, "a")),
		one("a", 5, "l", resources([]string{"get"}, []string{""}, []string{"pods", "pods/status"}, false, "a")),
		one("dangling", 1, "missing", resources(any, any, any, true, "*")),
		one("cluster", 6, "l", resources([]string{"list"}, []string{"apps"}, any, true)),
		one("many", 7, "l", resources(any, any, many, false, "*")),
		one("paths", 8, "l", paths("/hea*", "/b/*", "/c")),
		one("long", 9, "l", paths(long...)),
	})
	for _, c := range []struct {
		info *request.Info
		want string
	}{
		{ask("get", "", "pods", "", "a"), "a"},
		{ask("get", "", "pods", "status", "a"), "a"},
		{ask("get", "", "pods", "log", "a"), "many"},
		{ask("get", "", "pods", "exec", "a"), "late"},
		{ask("get", "", "pods", "", "b"), "late"},
		{ask("get", "apps", "pods", "", "a"), "late"},
		{ask("list", "apps", "deployments", "", ""), "cluster"},
		{ask("list", "apps", "deployments", "", "a"), "late"},
		{ask("list", "", "kind17", "", "z"), "many"},
		{ask("list", "", "kind17", "", ""), "late"},
		{path("get", "/b/x/y"), "paths"}, {path("get", "/b"), "rest"}, {path("get", "/c"), "paths"},
		{path("get", "/healthz"), "rest"}, {path("put", "/c"), "rest"},
		{path("get", "/path20"), "long"}, {path("get", "/a/x"), "long"}, {path("get", "/path99"), "rest"},
	} {
		if got := s.classify(user("u"), c.info); got.name != c.want {
			t.Errorf("%+v: %s, want %s", c.info, got.name, c.want)
		}
	}
}

// benchmarkClassify measures a request that only the last of the schemas matches.
func benchmarkClassify(b *testing.B, more int) {
	all := append(flowcontrol.MandatorySchemas(), flowcontrol.SuggestedSchemas()...)
	for i := range more {
		f := all[1].DeepCopy()
		f.Name, f.Spec.MatchingPrecedence = fmt.Sprintf("more-%d", i), int32(1000+i)
		f.Spec.Rules[0].NonResourceRules = nil
		f.Spec.Rules[0].ResourceRules[0].Resources = []string{fmt.Sprintf("kind%d", i)}
		all = append(all, *f)
	}
	s := compiled(all)
	u, info := user("bob", "devs"), ask("get", "", "pods", "", "a")
	b.ReportAllocs()
	for b.Loop() {
		if got := s.classify(u, info); got.name != "global-default" {
			b.Fatal(got.name)
		}
	}
}

func BenchmarkClassify(b *testing.B)         { benchmarkClassify(b, 0) }
func BenchmarkClassifyThousand(b *testing.B) { benchmarkClassify(b, 1000) }
