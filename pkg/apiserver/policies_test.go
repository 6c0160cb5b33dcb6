package apiserver_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"bonsai/api/scheme"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/defaulttolerationseconds"
	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/admission/policies"
	"bonsai/pkg/apiserver/admission/priority"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/fieldmanager"
)

// aliceAndAdmin: alice may do everything with config maps, admin everything.
type aliceAndAdmin struct{}

func (aliceAndAdmin) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	if a.User.Name == "admin" || a.User.Name == "alice" && a.Info.Resource == "configmaps" {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// withPolicies has the plug-ins of policies, after those that can be seen in what they change.
func withPolicies(t *testing.T, c *assemble.Config) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	var err error
	if c.Parts.Fields, err = fieldmanager.New(fieldmanager.Config{Scheme: scheme.New(), Log: log}); err != nil {
		t.Fatal(err)
	}
	c.Parts.Authorizer = aliceAndAdmin{}
	rules := policies.New(policies.Config{
		Mutating:           objects(c, "mutatingadmissionpolicies"),
		MutatingBindings:   objects(c, "mutatingadmissionpolicybindings"),
		Validating:         objects(c, "validatingadmissionpolicies"),
		ValidatingBindings: objects(c, "validatingadmissionpolicybindings"),
		Matcher: match.New(match.Config{Catalog: c.Catalog, Namespaces: late(c, "", "namespaces"),
			Authorizer: c.Parts.Authorizer, Log: log}),
		Stores: c.Catalog.Late, Merger: c.Parts.Fields, Log: log,
	})
	c.Parts.Admission = admission.NewChain(priority.New(late(c, "scheduling.k8s.io", "priorityclasses")),
		defaulttolerationseconds.New(defaulttolerationseconds.Default, defaulttolerationseconds.Default),
		rules.Mutating(), rules.Validating())
	c.Parts.Runs = rules.Runs()
}

// policyCase is a request to a real kube-apiserver v1.37.2 while policies were in force, and its answer.
type policyCase struct {
	Name, Namespace string
	// Before is what was there; Objects are the policies and bindings.
	Before, Objects          []struct{ Method, Path, Body string }
	Method, Path, Type, Body string
	User                     string
	Code                     int
	Warnings                 []string
	Answer                   any
}

var generated = regexp.MustCompile(`(g-|"c)[a-z0-9]{5}\b`)

// TestPoliciesReplay replays requests that a real kube-apiserver was asked while policies were in force, all of them at
// once, and expects its answers.
func TestPoliciesReplay(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/policies.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []policyCase
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	as := recordedServer(t, func(c *assemble.Config) {
		withPolicies(t, c)
		withBehaviours(t, c)
	})
	users := map[string]asker{"admin": as("admin"), "alice": as("alice")}
	admin := users["admin"]
	create := func(path, body string) {
		t.Helper()
		if code, _, answer := admin.call(t, http.MethodPost, path, body,
			"application/json"); code != http.StatusCreated &&
			!strings.Contains(answer, `namespaces \"default\" already exists`) {
			t.Fatalf("POST %s %s: %d %s", path, body, code, answer)
		}
	}
	if *askReal {
		create("/apis/rbac.authorization.k8s.io/v1/clusterroles",
			`{"metadata":{"name":"alice"},"rules":[{"verbs":["*"],"apiGroups":[""],"resources":["configmaps"]}]}`)
		create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
			`{"metadata":{"name":"alice"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"alice"},"subjects":[{"kind":"User","name":"alice"}]}`)
	}
	for _, name := range []string{"default", "marker"} {
		create("/api/v1/namespaces", `{"metadata":{"name":"`+name+`"}}`)
	}
	for _, c := range all {
		create("/api/v1/namespaces", `{"metadata":{"name":"`+c.Namespace+`"}}`)
		for _, b := range c.Before {
			create(b.Path, b.Body)
		}
	}
	for _, c := range all {
		for _, o := range c.Objects {
			create(o.Path, o.Body)
		}
	}
	waitForPolicy(t, admin)
	for _, c := range all {
		code, header, body := users[c.User].call(t, c.Method, c.Path, c.Body, c.Type)
		var answer any
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		got := map[string]any{"code": code, "warnings": append([]string{}, header["Warning"]...),
			"answer": starred(answer, "")}
		want := map[string]any{"code": c.Code, "warnings": append([]string{}, c.Warnings...), "answer": c.Answer}
		g, w := generatedStarred(t, got), generatedStarred(t, want)
		if !reflect.DeepEqual(g, w) {
			t.Errorf("%s: %s %s\ngot  %v\nwant %v", c.Name, c.Method, c.Path, g, w)
		}
	}
}

// generatedStarred replaces names that the server made.
func generatedStarred(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(generated.ReplaceAll(text, []byte("$1*")), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// waitForPolicy makes a policy and waits until it is in force, and with it all that were made before.
func waitForPolicy(t *testing.T, a asker) {
	t.Helper()
	policy := `{"metadata":{"name":"marker"},"spec":{"matchConstraints":{"resourceRules":[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]},"validations":[{"expression":"false"}]}}`
	binding := `{"metadata":{"name":"marker"},"spec":{"policyName":"marker","validationActions":["Deny"],"matchResources":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"marker"}}}}}`
	for path, body := range map[string]string{"validatingadmissionpolicies": policy,
		"validatingadmissionpolicybindings": binding} {
		if code, _, answer := a.call(t, http.MethodPost, configurations+path, body,
			"application/json"); code != http.StatusCreated {
			t.Fatalf("%d %s", code, answer)
		}
	}
	for begun := time.Now(); ; {
		code, _, body := a.call(t, http.MethodPost, "/api/v1/namespaces/marker/configmaps?dryRun=All",
			`{"metadata":{"name":"a"}}`, "application/json")
		if code == http.StatusUnprocessableEntity && strings.Contains(body, "'marker'") {
			return
		}
		if time.Since(begun) > time.Minute { // a machine may be busy
			t.Fatalf("the policies do not come into force: %d %s", code, body)
		}
	}
}
