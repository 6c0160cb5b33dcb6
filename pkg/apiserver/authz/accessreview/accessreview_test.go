package accessreview

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/authz/authztest"
	"bonsai/pkg/apiserver/request"
)

// program is a real kube-apiserver of Kubernetes, and etcd one for it.
var (
	program = flag.String("reference", "", "a kube-apiserver of Kubernetes, whose answers TestRecord records")
	etcd    = flag.String("etcd", "", "the URL of an etcd for the kube-apiserver of -reference")
)

const answersOf = "testdata/answers.json"

// hook is a webhook whose answer the user's name chooses.
type hook struct {
	mu    sync.Mutex
	asked []string // the specs
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var review struct {
		metav1.TypeMeta
		Spec json.RawMessage `json:"spec"`
	}
	var who struct{ User string }
	_ = json.Unmarshal(body, &review)
	_ = json.Unmarshal(review.Spec, &who)
	h.mu.Lock()
	h.asked = append(h.asked, string(review.Spec))
	h.mu.Unlock()
	status := func(s authorizationv1.SubjectAccessReviewStatus) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": review.Kind, "apiVersion": review.APIVersion,
			"metadata": map[string]any{}, "status": s})
	}
	text := func(s string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, s)
	}
	if code, err := strconv.Atoi(strings.TrimPrefix(who.User, "code-")); err == nil {
		http.Error(w, "no", code)
		return
	}
	switch who.User {
	case "allow":
		status(authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "yes"})
	case "deny":
		status(authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: "no"})
	case "both":
		status(authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true, Reason: "both"})
	case "fails":
		status(authorizationv1.SubjectAccessReviewStatus{EvaluationError: "cannot think", Reason: "why"})
	case "allows-and-fails":
		status(authorizationv1.SubjectAccessReviewStatus{Allowed: true, EvaluationError: "cannot think"})
	case "html":
		text("<html>")
	case "truncated":
		text(`{"kind":"SubjectAccessReview","status":{"allowed":true`)
	case "status":
		text(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	case "no-kind":
		text(`{"status":{"allowed":true}}`)
	case "other-version":
		text(`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","status":{"allowed":true}}`)
	case "nothing":
		text("")
	default:
		status(authorizationv1.SubjectAccessReviewStatus{})
	}
}

func (h *hook) reset() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.asked
	h.asked = nil
	return out
}

// webhook serves h and returns a kubeconfig.
func webhook(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: w}}]\n" +
		"clusters: [{name: w, cluster: {server: '" + s.URL + "/review'}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// conditions are of the recorded configuration: the first skips a user, the second is an error for others.
func conditions() []string {
	return []string{"request.user != 'skipped'",
		"!request.user.startsWith('broken') || request.extra['none'][0] == 'a'", "request.user != 'broken-and-skipped'"}
}

func compiled(t *testing.T, all []string) (out Conditions) {
	t.Helper()
	c := &expression.Compiler{}
	for _, text := range all {
		p, err := c.Compile(text, expression.Scope{Review: true}, expression.Bool())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// questions are users, each with an answer of its own, and requests of every form.
func questions() map[string]authorizationv1.SubjectAccessReviewSpec {
	out := map[string]authorizationv1.SubjectAccessReviewSpec{}
	pods := func() *authorizationv1.ResourceAttributes {
		return &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: "default"}
	}
	for _, user := range []string{"allow", "deny", "both", "fails", "allows-and-fails", "html", "truncated", "status",
		"no-kind", "other-version", "nothing", "skipped", "broken", "broken-and-skipped", "nobody", "code-400",
		"code-403", "code-404", "code-503", "code-307"} {
		out["user "+user] = authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: pods()}
	}
	out["path"] = authorizationv1.SubjectAccessReviewSpec{User: "x",
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/x", Verb: "get"}}
	out["all of a user"] = authorizationv1.SubjectAccessReviewSpec{User: "x", UID: "u", Groups: []string{"a", "b"},
		Extra:              map[string]authorizationv1.ExtraValue{"k": {"v", "w"}, "a.b/c": {"d"}},
		ResourceAttributes: pods()}
	out["all of a resource"] = authorizationv1.SubjectAccessReviewSpec{User: "x",
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "update", Group: "apps", Version: "v1",
			Resource: "deployments", Subresource: "scale", Namespace: "n", Name: "d"}}
	for _, s := range []struct{ fields, labels string }{{"a=b", ""}, {"a=b,c!=d", ""}, {"a==b", "x"}, {"", "x=1"},
		{"", "x=1,y in (b,a),!z,w,v!=2,q notin (a)"}, {"", "x==1"}, {"", "a>5"}, {"", "a>5,b=1"}, {"", "b b b"},
		{"bad", "x"}, {"metadata.name=n", "x in (a)"}, {"a=", "x="}} {
		r := pods()
		r.Verb = "list"
		if s.fields != "" {
			r.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: s.fields}
		}
		if s.labels != "" {
			r.LabelSelector = &authorizationv1.LabelSelectorAttributes{RawSelector: s.labels}
		}
		out[fmt.Sprintf("selectors %q %q", s.fields, s.labels)] = authorizationv1.SubjectAccessReviewSpec{User: "x",
			ResourceAttributes: r}
	}
	return out
}

// recorded is what a kube-apiserver v1.36.3 answers, and what it asks the webhook.
type recorded struct {
	Allowed, Denied bool
	Reason          string
	// Fails tells of an evaluationError.
	Fails bool
	Asked []json.RawMessage
}

// TestAnswers: the webhook is asked what a real kube-apiserver asks, and its answers mean the same.
func TestAnswers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(answersOf)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]recorded{}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for policy, onError := range map[string]authz.Decision{"NoOpinion": authz.NoOpinion, "Deny": authz.Deny} {
		h := &hook{}
		a, err := New(Config{Name: "w", File: webhook(t, h), Timeout: 10 * time.Second, Version: "v1",
			OnError: onError, Conditions: compiled(t, conditions()), FirstWait: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		for name, spec := range questions() {
			d, reason, err := a.Authorize(t.Context(), attributes(&spec))
			got := recorded{Allowed: d == authz.Allow, Denied: d == authz.Deny, Reason: reason, Fails: err != nil}
			w := want[policy][name]
			asked := h.reset()
			if len(asked) != len(w.Asked) {
				t.Errorf("%s, %s: asked %q, want %s", policy, name, asked, w.Asked)
			}
			for i := range min(len(asked), len(w.Asked)) {
				var one, other any
				_ = json.Unmarshal([]byte(asked[i]), &one)
				_ = json.Unmarshal(w.Asked[i], &other)
				if !reflect.DeepEqual(one, other) {
					t.Errorf("%s, %s: asked\n     %s\nwant %s", policy, name, asked[i], w.Asked[i])
				}
			}
			w.Asked = nil
			if strings.HasPrefix(name, "selectors ") {
				w.Fails = false // the review itself says that it cannot read a selector
			}
			if !reflect.DeepEqual(got, w) {
				t.Errorf("%s, %s: %+v, %v, want %+v", policy, name, got, err, w)
			}
		}
	}
}

// attributes are the request that a review is about.
func attributes(s *authorizationv1.SubjectAccessReviewSpec) authz.Attributes {
	u := &request.User{Name: s.User, UID: s.UID, Groups: s.Groups}
	for k, v := range s.Extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[k] = v
	}
	if n := s.NonResourceAttributes; n != nil {
		return authz.Attributes{User: u, Info: request.Info{Path: n.Path, Verb: n.Verb}}
	}
	r := s.ResourceAttributes
	i := request.Info{IsResource: true, Verb: r.Verb, APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource,
		Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name}
	if i.APIVersion == "" {
		i.APIVersion = "*"
	}
	if r.FieldSelector != nil {
		i.FieldSelector = r.FieldSelector.RawSelector
	}
	if r.LabelSelector != nil {
		i.LabelSelector = r.LabelSelector.RawSelector
	}
	return authz.Attributes{User: u, Info: i}
}

// TestRecord writes the answers of the program, and its questions, into the file that TestAnswers reads: go test
// ./pkg/apiserver/authz/accessreview -run TestRecord -args -reference PATH -etcd URL.
func TestRecord(t *testing.T) {
	if *program == "" {
		t.Skip("records from a kube-apiserver of Kubernetes (-reference)")
	}
	out := map[string]map[string]recorded{}
	for _, policy := range []string{"NoOpinion", "Deny"} {
		t.Run(policy, func(t *testing.T) {
			h := &hook{}
			config := filepath.Join(t.TempDir(), "authz.yaml")
			var matching []string
			for _, c := range conditions() {
				matching = append(matching, fmt.Sprintf("{expression: %q}", c))
			}
			text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n" +
				"- type: Webhook\n  name: w\n  webhook:\n    timeout: 10s\n    cacheAuthorizedRequests: false\n" +
				"    cacheUnauthorizedRequests: false\n    subjectAccessReviewVersion: v1\n" +
				"    matchConditionSubjectAccessReviewVersion: v1\n    failurePolicy: " + policy + "\n" +
				"    connectionInfo: {type: KubeConfigFile, kubeConfigFile: " + webhook(t, h) + "}\n" +
				"    matchConditions: [" + strings.Join(matching, ", ") + "]\n"
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := authztest.Start(t, *program, *etcd, nil, "--authorization-config="+config)
			all := questions()
			out[policy] = map[string]recorded{}
			for _, name := range slices.Sorted(maps.Keys(all)) {
				h.reset()
				status := s.Review(t, all[name])
				r := recorded{Allowed: status.Allowed, Denied: status.Denied, Reason: status.Reason,
					Fails: status.EvaluationError != ""}
				for _, spec := range h.reset() {
					r.Asked = append(r.Asked, json.RawMessage(spec))
				}
				out[policy][name] = r
			}
		})
	}
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(answersOf, append(text, '\n'), 0o644); err != nil { //nolint:gosec // no secret
		t.Fatal(err)
	}
}

// TestPoison: nobody gets the answer to another's question, nor that to another question of the same user: every field
// that a webhook sees is a part of what an answer is remembered by.
func TestPoison(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	a, err := New(Config{File: webhook(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `{"status":{"allowed":true}}`)
	})), Timeout: time.Minute, Version: "v1", AuthorizedTTL: time.Hour, UnauthorizedTTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	user := func(change func(*request.User)) authz.Attributes {
		u := &request.User{Name: "a", UID: "u", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}}
		change(u)
		return authz.Attributes{User: u, Info: request.Info{IsResource: true, Verb: "list", Resource: "pods"}}
	}
	info := func(change func(*request.Info)) authz.Attributes {
		at := user(func(*request.User) {})
		change(&at.Info)
		return at
	}
	for n, at := range []authz.Attributes{
		user(func(*request.User) {}), user(func(u *request.User) { u.Name = "b" }),
		user(func(u *request.User) { u.UID = "v" }), user(func(u *request.User) { u.Groups = []string{"g", "h"} }),
		user(func(u *request.User) { u.Groups = []string{"gh"} }),
		user(func(u *request.User) { u.Extra["k"] = []string{"v", "w"} }),
		user(func(u *request.User) { u.Extra["l"] = nil }), user(func(u *request.User) { u.Extra = nil }),
		info(func(i *request.Info) { i.Verb = "watch" }), info(func(i *request.Info) { i.APIGroup = "apps" }),
		info(func(i *request.Info) { i.APIVersion = "v1" }), info(func(i *request.Info) { i.Resource = "nodes" }),
		info(func(i *request.Info) { i.Subresource = "log" }), info(func(i *request.Info) { i.Namespace = "n" }),
		info(func(i *request.Info) { i.Name = "n" }), info(func(i *request.Info) { i.FieldSelector = "a=b" }),
		info(func(i *request.Info) { i.LabelSelector = "a=b" }),
		info(func(i *request.Info) { i.LabelSelector = "a!=b" }),
		{User: &request.User{Name: "a"}, Info: request.Info{Verb: "list", Path: "/x"}},
		{User: &request.User{Name: "a"}, Info: request.Info{Verb: "list", Path: "/y"}},
	} {
		for range 2 {
			if d, _, err := a.Authorize(t.Context(), at); d != authz.Allow || err != nil || int(asked.Load()) != n+1 {
				t.Errorf("question %d: %v, %v, asked %d times", n, d, err, asked.Load())
			}
		}
	}
}

// TestRemembered: answers are remembered for their time, errors and long answers are not.
func TestRemembered(t *testing.T) {
	t.Parallel()
	answers := map[string]string{"yes": `{"status":{"allowed":true}}`, "no": `{"status":{"denied":true}}`,
		"none": `{"status":{}}`, "bad": `{`,
		"long": `{"status":{"allowed":true,"reason":"` + strings.Repeat("x", maxRemembered+1) + `"}}`}
	for _, tt := range []struct {
		user                     string
		authorized, unauthorized time.Duration
		asked                    int32
	}{
		{"yes", time.Hour, 0, 1}, {"yes", 0, time.Hour, 3}, {"yes", -1, time.Hour, 3}, {"no", time.Hour, 0, 3},
		{"no", 0, time.Hour, 1}, {"none", 0, time.Hour, 1}, {"none", time.Hour, 0, 3}, {"bad", time.Hour, time.Hour, 3},
		{"long", time.Hour, time.Hour, 3},
	} {
		var asked atomic.Int32
		a, err := New(Config{File: webhook(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			_, _ = io.WriteString(w, answers[tt.user])
		})), Timeout: time.Minute, Version: "v1", AuthorizedTTL: tt.authorized, UnauthorizedTTL: tt.unauthorized})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, _, _ = a.Authorize(t.Context(), authz.Attributes{User: &request.User{Name: tt.user}})
		}
		if asked.Load() != tt.asked {
			t.Errorf("%+v: asked %d times", tt, asked.Load())
		}
	}
}

// TestRememberedBytes: of an answer only what decides and what the user gets is remembered, not the megabyte that the
// webhook says beside it.
func TestRememberedBytes(t *testing.T) {
	t.Parallel()
	a, err := New(Config{File: webhook(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":{"allowed":true,"reason":"r","evaluationError":"`+
			strings.Repeat("x", 1<<19)+`"}}`)
	})), Timeout: time.Minute, Version: "v1", AuthorizedTTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if d, reason, err := a.Authorize(t.Context(), authz.Attributes{User: &request.User{Name: "u"}}); d != authz.Allow ||
		reason != "r" || err != nil {
		t.Fatalf("%v, %q, %v", d, reason, err)
	}
	keys := a.answers.Keys()
	if len(keys) != 1 {
		t.Fatalf("%d answers are remembered", len(keys))
	}
	known, _ := a.answers.Get(keys[0])
	if text, err := json.Marshal(known); err != nil || len(text) > 100 {
		t.Errorf("%d bytes are remembered: %v", len(text), err)
	}
}

// TestSilent: a webhook that does not answer costs its timeout once, and counts as one.
func TestSilent(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	var asked atomic.Int32
	file := webhook(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(end) })
	for _, onError := range []authz.Decision{authz.NoOpinion, authz.Deny} {
		asked.Store(0)
		a, err := New(Config{File: file, Timeout: 10 * time.Millisecond, Version: "v1", OnError: onError})
		if err != nil {
			t.Fatal(err)
		}
		d, _, err := a.Authorize(t.Context(), authz.Attributes{User: &request.User{Name: "x"}})
		if d != onError || err == nil || resultOf(t.Context(), err) != "timeout" || asked.Load() > 1 {
			t.Errorf("%v, %v, asked %d times", d, err, asked.Load())
		}
	}
}

// TestBeta: v1beta1 names groups otherwise.
func TestBeta(t *testing.T) {
	t.Parallel()
	a, err := New(Config{File: webhook(t, http.NotFoundHandler()), Version: "v1beta1"})
	if err != nil {
		t.Fatal(err)
	}
	spec := specOf(&authz.Attributes{User: &request.User{Name: "a", Groups: []string{"g"}}, Info: request.Info{
		Path: "/x", Verb: "get"}})
	body, err := a.encode(spec)
	if err != nil || !bytes.Contains(body, []byte(`"apiVersion":"authorization.k8s.io/v1beta1"`)) ||
		!bytes.Contains(body, []byte(`"group":["g"]`)) {
		t.Errorf("%s: %v", body, err)
	}
}

// FuzzSelectors: whatever a selector holds, what a webhook sees of it is in the language of reviews.
func FuzzSelectors(f *testing.F) {
	for _, s := range []string{"a=b", "a!=b,c==d", "x in (a,b),!y", "a>5", "\\,=", "=", ",,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s := fieldsOf(text); s != nil {
			for _, r := range s.Requirements {
				if len(r.Values) != 1 || r.Operator != metav1.FieldSelectorOpIn &&
					r.Operator != metav1.FieldSelectorOpNotIn {
					t.Errorf("%+v", r)
				}
			}
			if _, err := fields.ParseSelector(text); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
		if s := labelsOf(text); s != nil {
			for _, r := range s.Requirements {
				operator := map[metav1.LabelSelectorOperator]selection.Operator{
					metav1.LabelSelectorOpIn: selection.In, metav1.LabelSelectorOpNotIn: selection.NotIn,
					metav1.LabelSelectorOpExists:       selection.Exists,
					metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist}[r.Operator]
				if _, err := labels.NewRequirement(r.Key, operator, r.Values); err != nil {
					t.Errorf("%+v: %v", r, err)
				}
			}
		}
	})
}
