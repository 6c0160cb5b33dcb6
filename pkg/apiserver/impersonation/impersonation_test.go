package impersonation

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

// asked is an authorizer that allows what its expression matches, and notes every question as "user verb
// group/resource/subresource namespace/name".
type asked struct {
	allow     *regexp.Regexp
	questions []string
}

func (z *asked) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	what := a.Path
	if a.IsResource {
		what = strings.Join([]string{a.APIGroup, a.Resource, a.Subresource}, "/") + " " + a.Namespace + "/" + a.Name
	}
	q := a.User.Name + " " + a.Verb + " " + what
	z.questions = append(z.questions, q)
	if z.allow.MatchString(q) {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

func (z *asked) permit(expr string) { z.allow, z.questions = regexp.MustCompile("^("+expr+")$"), nil }

var (
	listPods = &request.Info{IsResource: true, Verb: "list", APIPrefix: "api", APIVersion: "v1", Resource: "pods",
		Namespace: "default", InNamespace: true}
	bob   = &request.User{Name: "bob", UID: "bob-uid", Groups: []string{request.GroupAuthenticated}}
	agent = &request.User{Name: "system:serviceaccount:default:agent",
		Extra: map[string][]string{request.ExtraNodeName: {"n1"}}}
)

const never = "nothing"

// TestAs holds the questions, in their order, the refusals and the users to what a kube-apiserver v1.36.3 asked a
// webhook authorizer and answered.
func TestAs(t *testing.T) {
	const auth = "authentication.k8s.io"
	for _, c := range []struct {
		allow      string
		caller     *request.User
		wanted     request.User
		info       *request.Info
		questions  []string
		refusal    string // empty: it may
		constraint string
		groups     []string
	}{
		{allow: never, wanted: request.User{Name: "jane"},
			questions: []string{"bob impersonate-on:user-info:list /pods/ default/", "bob impersonate /users/ /jane"},
			refusal:   `pods is forbidden: User "bob" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "default"`},
		{allow: never, wanted: request.User{Name: "jane"}, info: &request.Info{Path: "/healthz", Verb: "get"},
			questions: []string{"bob impersonate-on:user-info:get /healthz", "bob impersonate /users/ /jane"},
			refusal:   `forbidden: User "bob" cannot impersonate-on:user-info:get path "/healthz"`},
		{allow: "bob impersonate-on:.*", wanted: request.User{Name: "jane"},
			questions: []string{"bob impersonate-on:user-info:list /pods/ default/",
				"bob impersonate:user-info " + auth + "/users/ /jane", "bob impersonate /users/ /jane"},
			refusal: `users.authentication.k8s.io "jane" is forbidden: User "bob" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope`},
		{allow: "bob impersonate[-:].*",
			wanted: request.User{Name: "jane", UID: "u1", Groups: []string{"g1", "g2"},
				Extra: map[string][]string{"acme.com/x": {"b", "c"}, "acme.com/a": {"d"}}},
			questions: []string{"bob impersonate-on:user-info:list /pods/ default/",
				"bob impersonate:user-info " + auth + "/users/ /jane",
				"bob impersonate:user-info " + auth + "/uids/ /u1",
				"bob impersonate:user-info " + auth + "/groups/ /g1",
				"bob impersonate:user-info " + auth + "/groups/ /g2",
				"bob impersonate:user-info " + auth + "/userextras/acme.com/a /d",
				"bob impersonate:user-info " + auth + "/userextras/acme.com/x /b",
				"bob impersonate:user-info " + auth + "/userextras/acme.com/x /c"},
			constraint: "impersonate:user-info", groups: []string{"g1", "g2", "system:authenticated"}},
		{allow: "bob impersonate[-:].*",
			wanted: request.User{Name: "jane", Extra: map[string][]string{"scopes": {"a"}}},
			questions: []string{"bob impersonate-on:user-info:list /pods/ default/",
				"bob impersonate:user-info " + auth + "/users/ /jane", "bob impersonate /users/ /jane"},
			refusal: `userextras.authentication.k8s.io is forbidden: User "bob" cannot impersonate:user-info resource "userextras" in API group "authentication.k8s.io" at the cluster scope: impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scopes": must be a domain-prefixed path (such as "acme.io/foo")`},
		{allow: "bob impersonate[-:].*", wanted: request.User{Name: "jane", Groups: []string{"system:masters"}},
			questions: []string{"bob impersonate-on:user-info:list /pods/ default/",
				"bob impersonate:user-info " + auth + "/users/ /jane", "bob impersonate /users/ /jane"},
			refusal: `groups.authentication.k8s.io "system:masters" is forbidden: User "bob" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed`},
		{allow: "bob impersonate[-:].*", wanted: request.User{Name: "jane", Groups: []string{""}},
			questions: []string{"bob impersonate-on:user-info:list /pods/ default/",
				"bob impersonate:user-info " + auth + "/users/ /jane", "bob impersonate /users/ /jane"},
			refusal: `groups.authentication.k8s.io is forbidden: User "bob" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the empty string group is not allowed`},
		{allow: ".*", wanted: request.User{Name: "jane", Groups: []string{"system:masters"}},
			questions: []string{"bob impersonate-on:user-info:list /pods/ default/",
				"bob impersonate:user-info " + auth + "/users/ /jane", "bob impersonate /users/ /jane",
				"bob impersonate /groups/ /system:masters"},
			groups: []string{"system:masters", "system:authenticated"}},
		{allow: "bob impersonate[-:].*", wanted: request.User{Name: "system:serviceaccount:ns1:sa1"},
			questions: []string{"bob impersonate-on:serviceaccount:list /pods/ default/",
				"bob impersonate:serviceaccount " + auth + "/serviceaccounts/ ns1/sa1"},
			constraint: "impersonate:serviceaccount",
			groups:     []string{"system:serviceaccounts", "system:serviceaccounts:ns1", "system:authenticated"}},
		{allow: "bob impersonate[-:].*",
			wanted:    request.User{Name: "system:serviceaccount:ns1:sa1", Groups: []string{"x"}},
			questions: []string{"bob impersonate /serviceaccounts/ ns1/sa1"},
			refusal:   `serviceaccounts "sa1" is forbidden: User "bob" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ns1"`},
		{allow: "bob impersonate[-:].*", wanted: request.User{Name: "system:serviceaccount:ns1:UP"},
			questions: []string{"bob impersonate-on:user-info:list /pods/ default/",
				"bob impersonate:user-info " + auth + "/users/ /system:serviceaccount:ns1:UP"},
			constraint: "impersonate:user-info", groups: []string{"system:authenticated"}},
		{allow: "bob impersonate[-:].*", wanted: request.User{Name: "system:node:n1"},
			questions: []string{"bob impersonate-on:arbitrary-node:list /pods/ default/",
				"bob impersonate:arbitrary-node " + auth + "/nodes/ /n1"},
			constraint: "impersonate:arbitrary-node", groups: []string{"system:nodes", "system:authenticated"}},
		{allow: "bob impersonate[-:].*", wanted: request.User{Name: "system:node:n1", Groups: []string{"system:nodes"}},
			questions: []string{"bob impersonate /users/ /system:node:n1"},
			refusal:   `users "system:node:n1" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope`},
		{allow: "bob impersonate[-:].*", wanted: request.User{Name: "system:node:N_1"},
			questions: []string{"bob impersonate-on:user-info:list /pods/ default/",
				"bob impersonate:user-info " + auth + "/users/ /system:node:N_1"},
			constraint: "impersonate:user-info", groups: []string{"system:authenticated"}},
		{allow: "bob impersonate[-:].*", wanted: request.User{Name: "system:anonymous"},
			questions: []string{"bob impersonate-on:user-info:list /pods/ default/",
				"bob impersonate:user-info " + auth + "/users/ /system:anonymous"},
			constraint: "impersonate:user-info", groups: []string{"system:unauthenticated"}},
		{allow: never, caller: agent, wanted: request.User{Name: "system:node:n1"},
			questions: []string{agent.Name + " impersonate-on:associated-node:list /pods/ default/",
				agent.Name + " impersonate-on:arbitrary-node:list /pods/ default/",
				agent.Name + " impersonate /users/ /system:node:n1"},
			refusal: `pods is forbidden: User "system:serviceaccount:default:agent" cannot impersonate-on:associated-node:list resource "pods" in API group "" in the namespace "default"`},
		{allow: ".* impersonate.*associated-node.*", caller: agent, wanted: request.User{Name: "system:node:n1"},
			questions: []string{agent.Name + " impersonate-on:associated-node:list /pods/ default/",
				agent.Name + " impersonate:associated-node " + auth + "/nodes/ /*"},
			constraint: "impersonate:associated-node", groups: []string{"system:nodes", "system:authenticated"}},
		{allow: ".* impersonate-on:associated-node.*", caller: agent, wanted: request.User{Name: "system:node:n1"},
			questions: []string{agent.Name + " impersonate-on:associated-node:list /pods/ default/",
				agent.Name + " impersonate:associated-node " + auth + "/nodes/ /*",
				agent.Name + " impersonate-on:arbitrary-node:list /pods/ default/",
				agent.Name + " impersonate /users/ /system:node:n1"},
			refusal: `nodes.authentication.k8s.io "*" is forbidden: User "system:serviceaccount:default:agent" cannot impersonate:associated-node resource "nodes" in API group "authentication.k8s.io" at the cluster scope`},
		{allow: ".* impersonate.*associated-node.*", caller: agent, wanted: request.User{Name: "system:node:n2"},
			questions: []string{agent.Name + " impersonate-on:arbitrary-node:list /pods/ default/",
				agent.Name + " impersonate /users/ /system:node:n2"},
			refusal: `pods is forbidden: User "system:serviceaccount:default:agent" cannot impersonate-on:arbitrary-node:list resource "pods" in API group "" in the namespace "default"`},
		{allow: never, caller: &request.User{Name: "someone", Extra: agent.Extra},
			wanted: request.User{Name: "system:node:n1"},
			questions: []string{"someone impersonate-on:arbitrary-node:list /pods/ default/",
				"someone impersonate /users/ /system:node:n1"},
			refusal: `pods is forbidden: User "someone" cannot impersonate-on:arbitrary-node:list resource "pods" in API group "" in the namespace "default"`},
		{allow: never, caller: &request.User{Name: agent.Name,
			Extra: map[string][]string{request.ExtraNodeName: {"n1", "n2"}}},
			wanted: request.User{Name: "system:node:n1"},
			questions: []string{agent.Name + " impersonate-on:arbitrary-node:list /pods/ default/",
				agent.Name + " impersonate /users/ /system:node:n1"},
			refusal: `pods is forbidden: User "system:serviceaccount:default:agent" cannot impersonate-on:arbitrary-node:list resource "pods" in API group "" in the namespace "default"`},
		{allow: "bob impersonate .*",
			wanted: request.User{Name: "kate", UID: "1", Groups: []string{"g"},
				Extra: map[string][]string{"zz": {"v"}}},
			questions: []string{"bob impersonate-on:user-info:list /pods/ default/", "bob impersonate /users/ /kate",
				"bob impersonate " + auth + "/uids/ /1", "bob impersonate /groups/ /g",
				"bob impersonate " + auth + "/userextras/zz /v"},
			groups: []string{"g", "system:authenticated"}},
		{allow: "bob impersonate .*", wanted: request.User{Name: "system:node:n3"},
			questions: []string{"bob impersonate-on:arbitrary-node:list /pods/ default/",
				"bob impersonate /users/ /system:node:n3"},
			groups: []string{"system:authenticated"}},
	} {
		z := &asked{}
		z.permit(c.allow)
		caller, info := c.caller, c.info
		if caller == nil {
			caller = bob
		}
		if info == nil {
			info = listPods
		}
		as, err := New(z, prometheus.NewRegistry(), time.Now).As(t.Context(), caller, &c.wanted, info)
		what := fmt.Sprintf("%s as %+v", caller.Name, c.wanted)
		if !slices.Equal(z.questions, c.questions) {
			t.Errorf("%s asks\n%s\nwant\n%s", what, strings.Join(z.questions, "\n"), strings.Join(c.questions, "\n"))
		}
		if c.refusal != "" {
			if err == nil || err.Error() != c.refusal {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if err != nil || as.Constraint != c.constraint || !slices.Equal(as.User.Groups, c.groups) ||
			as.User.Name != c.wanted.Name {
			t.Errorf("%s: %+v, %v", what, as, err)
		}
	}
}

// What was allowed is remembered for a moment, for just that; refusals and the older verb are not.
func TestRemembered(t *testing.T) {
	z, now := &asked{}, time.Unix(1e9, 0)
	i := New(z, prometheus.NewRegistry(), func() time.Time { return now })
	jane := &request.User{Name: "jane"}
	questions := func(allow string, wanted *request.User, info *request.Info) (n int, allowed bool) {
		z.permit(allow)
		_, err := i.As(t.Context(), bob, wanted, info)
		return len(z.questions), err == nil
	}
	get := *listPods
	get.Verb, get.Name = "get", "web"
	for _, c := range []struct {
		what    string
		after   time.Duration
		allow   string
		wanted  *request.User
		info    *request.Info
		n       int
		allowed bool
	}{
		{"the first time", 0, "bob impersonate[-:].*", jane, listPods, 2, true},
		{"again, while it is no longer allowed", 9 * time.Second, never, jane, listPods, 0, true},
		{"another action: the identity is known", 0, "bob impersonate[-:].*", jane, &get, 1, true},
		{"another user: everything is new", 0, never, &request.User{Name: "jane", UID: "1"}, listPods, 2, false},
		{"after ten seconds", 2 * time.Second, never, jane, listPods, 2, false},
		{"a refusal is not remembered", 0, "bob impersonate[-:].*", jane, listPods, 2, true},
		{"the older verb", 20 * time.Second, "bob impersonate .*", jane, listPods, 2, true},
		{"the older verb again: it is asked for first, and each time", 0, "bob impersonate .*", jane, listPods, 1,
			true},
	} {
		now = now.Add(c.after)
		if n, allowed := questions(c.allow, c.wanted, c.info); n != c.n || allowed != c.allowed {
			t.Errorf("%s: %d questions, allowed %v", c.what, n, allowed)
		}
	}
	// The mode that a caller was last allowed is tried first, and it is its refusal that is told.
	if _, err := i.As(t.Context(), bob, &request.User{Name: "kate"}, &get); err != nil {
		t.Errorf("kate: %v", err)
	}
	z.permit(never)
	if _, err := i.As(t.Context(), bob, jane, listPods); err == nil ||
		!strings.HasPrefix(err.Error(), `users "jane" is forbidden: User "bob" cannot impersonate resource`) {
		t.Errorf("refusal: %v", err)
	}
}

// A caller who acts as ever new users, with ever larger names, does not fill the memory: decisions are kept as hashes,
// and no more than so many.
func TestManyUsers(t *testing.T) {
	z := &asked{}
	z.permit(".*")
	i := New(z, prometheus.NewRegistry(), time.Now)
	for n := range maxRemembered {
		z.questions = nil
		caller := *bob
		caller.Name = fmt.Sprint("bob", n)
		if _, err := i.As(t.Context(), &caller, &request.User{Name: fmt.Sprint("user", n)}, listPods); err != nil {
			t.Fatal(err)
		}
	}
	if n, m := len(i.allowed.Keys()), len(i.lastMode.Keys()); n > maxRemembered || m > maxCallers {
		t.Errorf("%d decisions, %d callers", n, m)
	}
}

func TestMetrics(t *testing.T) {
	z, r := &asked{}, prometheus.NewRegistry()
	i := New(z, r, time.Now)
	for _, allow := range []string{never, "bob impersonate .*", "bob impersonate[-:].*"} {
		z.permit(allow)
		_, _ = i.As(t.Context(), bob, &request.User{Name: "jane"}, listPods)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if c := m.GetCounter(); c != nil { // labels are sorted: decision, mode
				got[f.GetName()+" "+m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = c.GetValue()
			}
		}
	}
	const attempts, questions = "apiserver_impersonation_attempts_total ",
		"apiserver_impersonation_authorization_attempts_total "
	want := map[string]float64{attempts + "denied ": 1, attempts + "allowed legacy": 1,
		attempts + "allowed user-info": 1,
		questions + "denied user-info": 2, questions + "allowed user-info": 2, questions + "denied legacy": 2,
		questions + "allowed legacy": 1}
	if !maps.Equal(got, want) {
		t.Errorf("metrics: %v\nwant %v", got, want)
	}
}
