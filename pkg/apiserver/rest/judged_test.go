package rest_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/api/scheme"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/registry/scale"
	"bonsai/pkg/apiserver/registry/token"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

// judged notes the objects that plug-ins see, without what differs from run to run.
type judged struct {
	t    *testing.T
	seen []string
}

func (j *judged) Admit(_ context.Context, a *admission.Attributes) error {
	j.note("changes", a.Object)
	return nil
}

func (j *judged) Validate(_ context.Context, a *admission.Attributes) error {
	j.note("judges", a.Object)
	if a.OldObject != nil {
		j.note("was", a.OldObject)
	}
	return nil
}

func (j *judged) note(half string, obj runtime.Object) {
	b, err := json.Marshal(obj)
	if err != nil {
		j.t.Error(err)
	}
	var all struct {
		Metadata     map[string]any
		Spec, Status json.RawMessage
	}
	if err := json.Unmarshal(b, &all); err != nil {
		j.t.Error(err)
	}
	var known []string
	for name := range all.Metadata {
		known = append(known, name)
	}
	slices.Sort(known)
	j.seen = append(j.seen, half+" ["+strings.Join(known, " ")+"] "+string(all.Spec)+string(all.Status))
}

// signs issues the same token to everybody.
type signs struct{}

func (signs) Issue(context.Context, token.Claims) (string, time.Time, error) {
	return "signed", time.Unix(5000, 0), nil
}

// Plug-ins that judge see the TokenRequest that will be issued and the Scale that will be read, those that change see
// what the client wrote, with defaults. What is refused anyway is not judged. So it is in Kubernetes 1.36.3.
func TestWhatAdmissionJudges(t *testing.T) {
	t.Parallel()
	facts := &storage.FactsTable{}
	served, err := catalog.New(t.Context(), catalog.Config{Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	seen := &judged{t: t}
	api, err := rest.New(rest.Config{Scheme: scheme.New(), Admission: seen, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	scales, err := scale.New(served, schema.GroupResource{Group: "apps", Resource: "deployments"})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := token.New(
		token.Config{Stores: served, Issuer: signs{}, Audiences: []string{"api"}, Now: func() time.Time {
			return time.Unix(1000, 0)
		}})
	if err != nil {
		t.Fatal(err)
	}
	entries := assembletest.Entries(t, memory.New(facts), slices.DeleteFunc(rows.All(), func(r resources.Row) bool {
		return !slices.Contains([]string{"deployments", "serviceaccounts"}, r.Resource)
	}))
	for i := range entries {
		e := &entries[i]
		e.Handle = api.Handler
		switch e.Row.Resource {
		case "deployments":
			e.Subresources["scale"] = registry.Answerer{ReadWriter: scales}
		case "serviceaccounts":
			e.Subresources["token"] = registry.Answerer{Creater: tokens}
		}
	}
	if err := served.Add(entries...); err != nil {
		t.Fatal(err)
	}
	const (
		merge       = "application/merge-patch+json"
		accounts    = "/api/v1/namespaces/ns/serviceaccounts"
		deployments = "/apis/apps/v1/namespaces/ns/deployments"
		noStatus    = `{"token":"","expirationTimestamp":null}`
	)
	for _, c := range []struct {
		method, url, media, body string
		code                     int
		want                     []string // nil: not looked at
	}{
		{"POST", accounts, "application/json", `{"metadata":{"name":"sa"}}`, 201, nil},
		{"POST", accounts + "/sa/token", "application/json", `{"spec":{"audiences":null,"expirationSeconds":null}}`,
			201, []string{
				`changes [namespace] {"audiences":null,"expirationSeconds":3600,"boundObjectRef":null}` + noStatus,
				`judges [creationTimestamp name namespace uid] {"audiences":["api"],"expirationSeconds":3600,"boundObjectRef":null}` + noStatus}},
		{"POST", accounts + "/sa/token", "application/json", `{"spec":{"expirationSeconds":1}}`, 422, []string{
			`changes [namespace] {"audiences":null,"expirationSeconds":1,"boundObjectRef":null}` + noStatus}},
		{"POST", accounts + "/none/token", "application/json", `{"spec":{"audiences":["a"]}}`, 404, []string{
			`changes [namespace] {"audiences":["a"],"expirationSeconds":3600,"boundObjectRef":null}` + noStatus}},
		{"POST", deployments, "application/json",
			`{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`, 201, nil},
		{"PUT", deployments + "/d/scale", "application/json",
			`{"metadata":{"name":"d","labels":{"a":"b"}},"spec":{"replicas":3},"status":{"replicas":9,"selector":"other"}}`, 200, []string{
				`changes [labels name namespace] {"replicas":3}{"replicas":9,"selector":"other"}`,
				`judges [creationTimestamp name namespace resourceVersion uid] {"replicas":3}{"replicas":0,"selector":"a=b"}`,
				`was [creationTimestamp name namespace resourceVersion uid] {"replicas":1}{"replicas":0,"selector":"a=b"}`}},
		{"PATCH", deployments + "/d/scale", merge, `{"spec":{"replicas":-1}}`, 422, []string{
			`changes [creationTimestamp name namespace resourceVersion uid] {"replicas":-1}{"replicas":0,"selector":"a=b"}`}},
	} {
		seen.seen = nil
		r := httptest.NewRequest(c.method, c.url, strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.media)
		info := rest.InfoOf(r)
		info.Served = served.Snapshot()
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r.WithContext(request.WithInfo(r.Context(), info)))
		if w.Code != c.code || c.want != nil && !slices.Equal(seen.seen, c.want) {
			t.Errorf("%s %s: %d %s\nseen %q\nwant %q", c.method, c.url, w.Code, w.Body, seen.seen, c.want)
		}
	}
}
