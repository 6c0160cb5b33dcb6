package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"bonsai/api/apiextensions/referencetest"
)

var recordReplays = flag.Bool("record-replays", false,
	"write testdata/replay/answers with the real kube-apiserver of $REFERENCE_KUBE_APISERVER")

// scenario is a server with flags and files, and the requests that it is sent. The texts of its flags, files and
// requests name things of one run: $DIR, the directory of the files; $HOOK and $CA, the webhooks and their certificate;
// $ISSUER and $AUTHORITY, the OpenID provider and its certificate.
type scenario struct {
	Flags []string          `json:"flags"`
	Files map[string]string `json:"files,omitempty"`
	// Certificates and Tokens are credentials, by the names that steps give in As.
	Certificates map[string]certificate `json:"certificates,omitempty"`
	Tokens       map[string]idToken     `json:"tokens,omitempty"`
	Steps        []step                 `json:"steps,omitempty"`
	// Questions are asked after the steps.
	Questions *questions `json:"questions,omitempty"`
	// Legacy is an audit log of lines that are not JSON.
	Legacy bool `json:"legacy,omitempty"`
}

// step is one request.
type step struct {
	// Do is the method and the path.
	Do string `json:"do"`
	// As names a certificate, a token of the scenario or one that a step has kept; else it is a bearer token itself,
	// and "nobody" is no credential. The default is "admin".
	As   string `json:"as,omitempty"`
	Body any    `json:"body,omitempty"`
	// Raw is a body that is no JSON.
	Raw     string            `json:"raw,omitempty"`
	Type    string            `json:"type,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Until repeats the request until it is answered with this code: the server sees its own objects a little later.
	Until int `json:"until,omitempty"`
	// Keep is the name of the token in the answer. Show are fields of the answer that count.
	Keep string   `json:"keep,omitempty"`
	Show []string `json:"show,omitempty"`
	// Differs is why our answer is another one; docs/differences.md has the row.
	Differs string `json:"differs,omitempty"`
}

// questions are SubjectAccessReviews: every user × verb × what.
type questions struct {
	Users []struct {
		Name   string   `json:"name"`
		Groups []string `json:"groups,omitempty"`
	} `json:"users"`
	Verbs []string `json:"verbs"`
	// What lists paths, or resources as "NAMESPACE GROUP/RESOURCE/SUBRESOURCE NAME". Every part may be empty.
	What []string `json:"what"`
}

// answer is what a server answers to a step, without what differs from run to run.
type answer struct {
	Do      string              `json:"do"`
	As      string              `json:"as,omitempty"`
	Code    int                 `json:"code"`
	Headers map[string][]string `json:"headers,omitempty"`
	// Body is a refusal. Fields are those that the step shows of another answer.
	Body   any            `json:"body,omitempty"`
	Fields map[string]any `json:"fields,omitempty"`
	// Events are those of the audit log, Lines those of one that is not JSON.
	Events []any    `json:"events,omitempty"`
	Lines  []string `json:"lines,omitempty"`
}

// answers are what a scenario leads to.
type answers struct {
	Steps []answer `json:"steps,omitempty"`
	// Questions are the answers to them, by the question. Those without an opinion are left out.
	Questions map[string]string `json:"questions,omitempty"`
	// Posts are the requests to the audit webhook, without their events.
	Posts []any `json:"posts,omitempty"`
}

// TestReplay sends what a real kube-apiserver v1.37.2 was sent, under the same flags and files, and expects its answers
// and its audit events: every file in testdata/replay is a scenario, and the file of the same name in answers has what
// it led to. It records them again with REFERENCE_KUBE_APISERVER=PATH go test ./cmd/kube-apiserver -run TestReplay
// -args -record-replays.
func TestReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/replay/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			if !*recordReplays {
				t.Parallel()
			}
			var s scenario
			referencetest.Read(t, file, &s)
			w := newWorld(t, &s)
			recorded := filepath.Join("testdata/replay/answers", name+".yaml")
			if *recordReplays {
				got := w.play(t, w.start(t, true))
				referencetest.Write(t, recorded, got)
				return
			}
			var want answers
			referencetest.Read(t, recorded, &want)
			compareAnswers(t, s.Steps, want, w.play(t, w.start(t, false)))
		})
	}
}

func compareAnswers(t *testing.T, steps []step, want, got answers) {
	t.Helper()
	if len(want.Steps) != len(got.Steps) {
		t.Fatalf("%d steps, %d recorded answers: record again", len(got.Steps), len(want.Steps))
	}
	for i := range got.Steps {
		w, g := referencetest.YAML(t, want.Steps[i]), referencetest.YAML(t, got.Steps[i])
		switch {
		case steps[i].Differs != "":
			if w == g {
				t.Errorf("step %d: %s is answered as recorded: take its \"differs\" out", i, got.Steps[i].Do)
			}
		case w != g:
			t.Errorf("step %d: %s as %q\n%s", i, got.Steps[i].Do, got.Steps[i].As, referencetest.Difference(w, g))
		}
	}
	for name := range merged(want.Questions, got.Questions) {
		if w, g := want.Questions[name], got.Questions[name]; w != g {
			t.Errorf("%s:\n got %s\nwant %s", name, g, w)
		}
	}
	if w, g := referencetest.YAML(t, want.Posts), referencetest.YAML(t, got.Posts); w != g {
		t.Errorf("requests to the audit webhook:\n%s", referencetest.Difference(w, g))
	}
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}

// play takes a server through the scenario, ends it, and reads what it noted.
func (w *world) play(t *testing.T, s *server) answers {
	t.Helper()
	var out answers
	for i := range w.scenario.Steps {
		out.Steps = append(out.Steps, w.do(t, s, i))
	}
	if w.scenario.Questions != nil {
		out.Questions = w.ask(t, s)
	}
	s.stop() // which writes the events that wait
	noted, posts := w.events(t)
	out.Posts = posts
	for i := range out.Steps {
		id := stepID(i)
		if w.scenario.Legacy {
			out.Steps[i].Lines = w.legacyLines(t, id)
			continue
		}
		out.Steps[i].Events = noted[id]
	}
	return out
}

// stepID is the Audit-ID of a step.
func stepID(i int) string { return fmt.Sprintf("step-%d", i) }

func (w *world) do(t *testing.T, s *server, i int) answer {
	t.Helper()
	step := &w.scenario.Steps[i]
	body := w.fill(step.Raw)
	if step.Body != nil {
		b, err := json.Marshal(step.Body)
		if err != nil {
			t.Fatal(err)
		}
		body = w.fill(string(b))
	}
	deadline := time.Now().Add(time.Minute)
	for {
		r, err := w.request(step, s.url, body)
		if err != nil {
			t.Fatal(err)
		}
		if step.Until == 0 && r.Header.Get("Audit-Id") == "" {
			r.Header.Set("Audit-Id", stepID(i))
		}
		code, header, text, err := w.send(r.WithContext(t.Context()), step.As)
		if err != nil {
			t.Fatalf("step %d: %s: %v", i, step.Do, err)
		}
		if step.Until == 0 || code == step.Until {
			return w.answered(t, s, step, code, header, text)
		}
		if time.Now().After(deadline) {
			t.Fatalf("step %d: %s: waited in vain for %d, last was %d %s", i, step.Do, step.Until, code, text)
		}
	}
}

func (w *world) request(step *step, url, body string) (*http.Request, error) {
	method, path, ok := strings.Cut(step.Do, " ")
	if !ok {
		return nil, fmt.Errorf("the step does nothing: %q", step.Do)
	}
	r, err := http.NewRequest(method, url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range map[string]string{"User-Agent": "test", "Accept": "application/json",
		"Content-Type": media(step.Type)} {
		if body != "" || k != "Content-Type" {
			r.Header.Set(k, v)
		}
	}
	for k, v := range step.Headers {
		r.Header.Set(k, w.fill(v))
	}
	return r, nil
}

// media is the long name of a media type.
func media(name string) string {
	long := map[string]string{"": "application/json", "merge": "application/merge-patch+json",
		"patch": "application/json-patch+json", "apply": "application/apply-patch+yaml",
		"strategic": "application/strategic-merge-patch+json", "yaml": "application/yaml"}
	if m := long[name]; m != "" {
		return m
	}
	return name
}

// send sends a request with a credential.
func (w *world) send(r *http.Request, as string) (int, http.Header, []byte, error) {
	client := w.client(as)
	defer client.CloseIdleConnections()
	return w.sendBy(client, r, as)
}

// sendBy is send by a client whose connections last.
func (w *world) sendBy(client *http.Client, r *http.Request, as string) (int, http.Header, []byte, error) {
	if token := w.token(as); token != "" && r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, text, err
}

// answered is what counts of an answer.
func (w *world) answered(t *testing.T, s *server, step *step, code int, header http.Header, text []byte) answer {
	t.Helper()
	a := answer{Do: step.Do, As: step.As, Code: code, Headers: map[string][]string{}}
	for name, values := range header {
		if !ofOneAnswer(name) {
			a.Headers[name] = values
		}
	}
	a.Headers = w.normal(s, a.Headers).(map[string][]string)
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		if code >= http.StatusBadRequest && step.Until == 0 {
			a.Body = w.normal(s, string(text))
		}
		return a
	}
	if step.Keep != "" {
		token, _, err := unstructured.NestedString(doc, "status", "token")
		if err != nil || token == "" {
			t.Fatalf("%s: no token in %s", step.Do, text)
		}
		w.kept[step.Keep] = token
	}
	if step.Until != 0 {
		return a
	}
	if code >= http.StatusBadRequest {
		a.Body = w.normal(s, doc)
		return a
	}
	for _, path := range step.Show {
		v, found, err := unstructured.NestedFieldNoCopy(doc, strings.Split(path, ".")...)
		if err != nil {
			t.Fatal(err)
		}
		if found {
			if a.Fields == nil {
				a.Fields = map[string]any{}
			}
			a.Fields[path] = w.normal(s, v)
		}
	}
	return a
}

// ofOneAnswer reports whether a header says nothing that the scenarios are about.
func ofOneAnswer(name string) bool {
	return slices.Contains([]string{"Date", "Audit-Id", "Content-Length", "X-Kubernetes-Pf-Flowschema-Uid",
		"X-Kubernetes-Pf-Prioritylevel-Uid", "Accept-Ranges", "Last-Modified", "Etag", "Vary",
		"Process-Start-Time-Unix"}, name)
}

// ask asks the questions of the scenario.
func (w *world) ask(t *testing.T, s *server) map[string]string {
	t.Helper()
	out := map[string]string{}
	q, client := w.scenario.Questions, w.client("admin")
	defer client.CloseIdleConnections()
	for _, user := range q.Users {
		for _, verb := range q.Verbs {
			for _, what := range q.What {
				spec := authorizationv1.SubjectAccessReviewSpec{User: user.Name, Groups: user.Groups}
				if strings.HasPrefix(what, "/") {
					spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: what, Verb: verb}
				} else {
					spec.ResourceAttributes = resourceAttributes(verb, what)
				}
				if said := w.review(t, client, s, spec); said != "" {
					out[fmt.Sprintf("%s %q %s %s", user.Name, user.Groups, verb, strings.TrimSpace(what))] = said
				}
			}
		}
	}
	return out
}

func resourceAttributes(verb, what string) *authorizationv1.ResourceAttributes {
	parts := append(strings.Split(what, " "), "", "")
	resource := append(strings.Split(parts[1], "/"), "", "")
	return &authorizationv1.ResourceAttributes{Verb: verb, Namespace: parts[0], Group: resource[0],
		Resource: resource[1], Subresource: resource[2], Name: parts[2]}
}

func (w *world) review(t *testing.T, client *http.Client, s *server,
	spec authorizationv1.SubjectAccessReviewSpec) string {
	t.Helper()
	body, err := json.Marshal(authorizationv1.SubjectAccessReview{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		s.url+"/apis/authorization.k8s.io/v1/subjectaccessreviews", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	code, _, text, err := w.sendBy(client, r, "admin")
	if err != nil || code != http.StatusCreated {
		t.Fatalf("%d %s: %v", code, text, err)
	}
	var review authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(text, &review); err != nil {
		t.Fatal(err)
	}
	if reflect.DeepEqual(review.Status, authorizationv1.SubjectAccessReviewStatus{}) {
		return ""
	}
	said, err := json.Marshal(review.Status)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}

// sameOrder reports an event whose fields are not in the order of upstream's type, or that has fields of its own.
func sameOrder(line []byte) error {
	var e auditv1.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	again, err := json.Marshal(&e)
	if err != nil {
		return err
	}
	if line = bytes.TrimSpace(line); !bytes.Equal(again, line) {
		return fmt.Errorf("its fields are in another order:\n got %s\nwant %s", line, again)
	}
	return nil
}
