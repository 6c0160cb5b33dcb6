package abac

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/authz/authztest"
	"bonsai/pkg/apiserver/request"
)

// program is a real kube-apiserver of Kubernetes, and etcd one for it.
var (
	program = flag.String("reference", "", "a kube-apiserver of Kubernetes, whose answers TestRecord records")
	etcd    = flag.String("etcd", "", "the URL of an etcd for the kube-apiserver of -reference")
)

const (
	policies  = "testdata/policies.jsonl"
	answersOf = "testdata/answers.json"
)

// answers are those of a kube-apiserver v1.36.3 with the policies.
type answers struct {
	// Allowed are the questions that it allows, of all questions.
	Allowed []string
	// Reason is the one that it gives for forbidding all others.
	Reason string
	// Rules are those that users review, by user and namespace.
	Rules map[string]authorizationv1.SubjectRulesReviewStatus
}

// users are those of the policies, and some who are in none.
func users() []string {
	return []string{"alice", "nonres", "clusterall", "reader", "core", "nonamespace", "bob", "old", "oldread", "oldns",
		"stranger"}
}

// questions are every user × kind of request × verb, by a text that says what each is.
func questions() map[string]authorizationv1.SubjectAccessReviewSpec {
	out := map[string]authorizationv1.SubjectAccessReviewSpec{}
	groups := [][]string{{request.GroupAuthenticated}}
	ask := func(user string, in []string) {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
			for _, namespace := range []string{"", "default", "dev", "kube-system", "ops", "open"} {
				for _, r := range []string{"/pods", "/nodes", "apps/deployments", "/configmaps", "/secrets", "/events",
					"events.k8s.io/events", "/oldres"} {
					group, resource, _ := strings.Cut(r, "/")
					out[fmt.Sprintf("%s %q %s %s %s", user, in, verb, r, namespace)] =
						authorizationv1.SubjectAccessReviewSpec{User: user, Groups: in,
							ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group,
								Resource: resource, Namespace: namespace}}
				}
			}
		}
		for _, verb := range []string{"get", "post"} {
			for _, path := range []string{"/", "/foo", "/foobar", "/fo", "/foo/bar", ""} {
				out[fmt.Sprintf("%s %q %s path %s", user, in, verb, path)] = authorizationv1.SubjectAccessReviewSpec{
					User: user, Groups: in, NonResourceAttributes: &authorizationv1.NonResourceAttributes{
						Path: path, Verb: verb}}
			}
		}
	}
	for _, user := range append(users(), "system:serviceaccount:default:sa", "system:node:n1", "*") {
		for _, in := range groups {
			ask(user, in)
		}
	}
	ask("stranger", nil)
	ask("stranger", []string{"devs"})
	ask("stranger", []string{"oldgroup", request.GroupAuthenticated})
	ask("stranger", []string{"*"})
	ask("bob", []string{"ops"})
	ask("alice", []string{"ops"})
	return out
}

// TestAnswers: every user × request × verb is answered as by a real kube-apiserver.
func TestAnswers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(answersOf)
	if err != nil {
		t.Fatal(err)
	}
	var want answers
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	a, unversioned, err := Load(policies)
	if err != nil || unversioned != 5 {
		t.Fatalf("%d lines without a version: %v", unversioned, err)
	}
	for name, spec := range questions() {
		at := authz.Attributes{User: &request.User{Name: spec.User, Groups: spec.Groups}}
		if r := spec.ResourceAttributes; r != nil {
			at.Info = request.Info{IsResource: true, Verb: r.Verb, APIGroup: r.Group, Resource: r.Resource,
				Namespace: r.Namespace}
		} else {
			at.Info = request.Info{Verb: spec.NonResourceAttributes.Verb, Path: spec.NonResourceAttributes.Path}
		}
		d, reason, err := a.Authorize(t.Context(), at)
		_, allowed := slices.BinarySearch(want.Allowed, name)
		if err != nil || allowed != (d == authz.Allow) || !allowed && reason != want.Reason || d == authz.Deny {
			t.Errorf("%s: %v %q %v, want allowed=%v", name, d, reason, err, allowed)
		}
	}
	for key, rules := range want.Rules {
		user, namespace, _ := strings.Cut(key, " ")
		got := a.ReviewRules(t.Context(), &request.User{Name: user, Groups: []string{request.GroupAuthenticated}},
			namespace)
		if got.ResourceRules == nil {
			got.ResourceRules = []authorizationv1.ResourceRule{}
		}
		if got.NonResourceRules == nil {
			got.NonResourceRules = []authorizationv1.NonResourceRule{}
		}
		if !reflect.DeepEqual(got, rules) {
			t.Errorf("rules of %s:\n got %+v\nwant %+v", key, got, rules)
		}
	}
}

// TestRecord writes the answers of the program into the file that TestAnswers reads: go test ./pkg/apiserver/authz/abac
// -run TestRecord -args -reference PATH -etcd URL.
func TestRecord(t *testing.T) {
	if *program == "" {
		t.Skip("records from a kube-apiserver of Kubernetes (-reference)")
	}
	path, err := filepath.Abs(policies)
	if err != nil {
		t.Fatal(err)
	}
	s := authztest.Start(t, *program, *etcd, users(), "--authorization-mode=ABAC", "--authorization-policy-file="+path)
	out := answers{Rules: map[string]authorizationv1.SubjectRulesReviewStatus{}}
	all := questions()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		status := s.Review(t, all[name])
		if status.Denied || status.EvaluationError != "" {
			t.Errorf("%s: %+v", name, status)
		}
		if status.Allowed {
			out.Allowed = append(out.Allowed, name)
		} else {
			out.Reason = status.Reason
		}
	}
	for _, user := range users() {
		for _, namespace := range []string{"default", "dev"} {
			out.Rules[user+" "+namespace] = s.Rules(t, user, namespace)
		}
	}
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(answersOf, append(text, '\n'), 0o644); err != nil { //nolint:gosec // no secret
		t.Fatal(err)
	}
}

// TestLines: a bad line ends the start with its file and number, in the words of a real kube-apiserver v1.36.3. Where
// ours is stricter, why says the reason.
func TestLines(t *testing.T) {
	t.Parallel()
	const of = `{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": `
	for _, tt := range []struct{ file, want, why string }{
		{file: ""}, {file: "\n\n  \n"}, {file: "# a\n  # b\n"}, {file: of + `{"user":"alice"}}`},
		{file: `{"user":"a"}`},
		{file: `{"kind":"Policy","user":"a"}`}, {file: `{"user":"a","x":1}`}, {file: of + `{"user":"a","nmespace":"*"}}`},
		{file: `{"apiVersion":"abac.authorization.kubernetes.io/v0","kind":"Policy","user":"a"}`},
		{file: "{\"user\":\"a\"}\r\n{\"user\":\"b\"}\r\n"}, {file: `{"user":"a","user":"b"}`},
		{file: "{", want: "line 1: {: couldn't get version/kind; json parse error: unexpected end of JSON input"},
		{file: "{\"user\":\"a\"}\n\n{\"user\":",
			want: "line 3: {\"user\":: couldn't get version/kind; json parse error: unexpected end of JSON input"},
		{file: "{\"user\":\"a\"}\n{", want: "line 2: {: couldn't get version/kind; json parse error: unexpected end of JSON input"},
		{file: `{"user":5}`,
			want: `line 1: {"user":5}: json: cannot unmarshal number into Go struct field .user of type string`,
			why:  "the field has no type's name before it"},
		{file: `{"user":"a","readonly":"true"}`,
			want: `line 1: {"user":"a","readonly":"true"}: json: cannot unmarshal string into Go struct field .readonly of type bool`,
			why:  "the field has no type's name before it"},
		{file: `{"user":"a"} {"user":"b"}`, want: `line 1: {"user":"a"} {"user":"b"}: couldn't get version/kind; json parse error: invalid character '{' after top-level value`},
		{file: `{"user":"a",}`, want: `line 1: {"user":"a",}: couldn't get version/kind; json parse error: invalid character '}' looking for beginning of object key string`},
		{file: `{"user":"a"} # x`, want: `line 1: {"user":"a"} # x: couldn't get version/kind; json parse error: invalid character '#' after top-level value`},
		{file: "[]", want: "line 1: []: couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type v1.TypeMeta",
			why: "the type is one with a name"},
		{file: "user: a", want: "line 1: user: a: couldn't get version/kind; json parse error: invalid character 'u' looking for beginning of value",
			why: "a policy is JSON, and not YAML"},
		{file: `{"apiVersion":"abac.authorization.kubernetes.io/v2","kind":"Policy"}`,
			want: `line 1: {"apiVersion":"abac.authorization.kubernetes.io/v2","kind":"Policy"}: no kind "Policy" is registered for version "abac.authorization.kubernetes.io/v2": it must be of kind Policy of abac.authorization.kubernetes.io/v1beta1`,
			why:  "ours says what it must be"},
		{file: `{"apiVersion":"v1","kind":"Pod"}`,
			want: `line 1: {"apiVersion":"v1","kind":"Pod"}: no kind "Pod" is registered for version "v1": it must be of kind Policy of abac.authorization.kubernetes.io/v1beta1`,
			why:  "ours says what it must be"},
		{file: `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","spec":{}}`,
			want: `line 1: {"apiVersion":"abac.authorization.kubernetes.io/v1beta1","spec":{}}: a policy of abac.authorization.kubernetes.io/v1beta1 must be of kind Policy`,
			why:  "ours says what it must be"},
		{file: "{}", want: "line 1: {}: " + errNobody.Error(), why: "there it allows everything to everybody"},
		{file: "null", want: "line 1: null: " + errNobody.Error(), why: "there it allows everything to everybody"},
		{file: `{"spec":{"user":"a"}}`, want: `line 1: {"spec":{"user":"a"}}: ` + errNobody.Error(),
			why: "there it allows everything to everybody"},
		{file: `{"user":"` + strings.Repeat("a", 70_000) + `"}`, want: "bufio.Scanner: token too long"},
		{file: strings.Repeat("# "+strings.Repeat("a", 1000)+"\n", maxFile/1000),
			want: fmt.Sprintf("it has more than %d bytes", maxFile), why: "there a file has no bound"},
	} {
		_, _, err := parse("FILE", strings.NewReader(tt.file))
		if tt.want == "" {
			if err != nil {
				t.Errorf("%.80s: %v", tt.file, err)
			}
			continue
		}
		at := "error reading policy file FILE, "
		if !strings.HasPrefix(tt.want, "line ") {
			at = "error reading policy file FILE: "
		}
		if err == nil || err.Error() != at+tt.want {
			t.Errorf("%.80s:\n got %.300v\nwant %s", tt.file, err, at+tt.want)
		}
	}
}

// FuzzPolicies: no file is a panic, and none allows anything to a user who is in no group and in no line.
func FuzzPolicies(f *testing.F) {
	text, err := os.ReadFile(policies)
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		a, _, err := parse("FILE", bytes.NewReader(file))
		if err != nil {
			return
		}
		at := authz.Attributes{User: &request.User{Name: "nobody \x00"}, Info: request.Info{
			IsResource: true, Verb: "get", Resource: "pods"}}
		if d, _, err := a.Authorize(t.Context(), at); d != authz.NoOpinion || err != nil {
			t.Errorf("%v, %v", d, err)
		}
		a.ReviewRules(t.Context(), at.User, "default")
	})
}
