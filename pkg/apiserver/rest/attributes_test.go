package rest_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/api/scheme"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/registry/binding"
	"bonsai/pkg/apiserver/registry/eviction"
	"bonsai/pkg/apiserver/registry/scale"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

// told notes what admission is told, one line for each time the validating plug-ins are asked.
type told struct{ lines []string }

func (*told) Admit(context.Context, *admission.Attributes) error { return nil }

func (n *told) Validate(_ context.Context, a *admission.Attributes) error {
	what := a.Resource.Resource
	if a.Subresource != "" {
		what += "/" + a.Subresource
	}
	name := strconv.Quote(a.Name)
	if a.Collection {
		name += " of all"
	}
	line := fmt.Sprintf("%s %s %s: %s", a.Operation, what, name, a.Kind.Kind)
	if a.RequestKind != a.Kind || a.RequestResource != a.Resource {
		line += fmt.Sprintf(" asked for as %s %s", a.RequestKind, a.RequestResource.GroupResource())
	}
	for _, obj := range []runtime.Object{a.Object, a.OldObject} {
		line += ", "
		if obj != nil {
			line += strings.TrimPrefix(reflect.TypeOf(obj).String(), "*")
			if kind := obj.GetObjectKind().GroupVersionKind(); kind != a.Kind {
				line += fmt.Sprintf(" said to be a %s", kind)
			}
		}
	}
	line += ", "
	switch o := a.Options.(type) {
	case *metav1.CreateOptions:
		line += o.APIVersion + " " + o.Kind + " " + o.FieldManager + o.FieldValidation
	case *metav1.UpdateOptions:
		line += o.APIVersion + " " + o.Kind + " " + o.FieldManager + o.FieldValidation
	case *metav1.DeleteOptions:
		line += fmt.Sprintf("%s %s %d", o.APIVersion, o.Kind, *o.GracePeriodSeconds)
	}
	n.lines = append(n.lines, line)
	return nil
}

// execs answers a connection with what was asked for.
type execs struct{}

func (execs) Options(path string, query url.Values) (runtime.Object, error) {
	return &corev1.PodExecOptions{Command: query["command"], Container: path}, nil
}

func (execs) Connect(_ context.Context, _, _ string, opts runtime.Object, w http.ResponseWriter,
	_ *http.Request) error {
	fmt.Fprint(w, opts.(*corev1.PodExecOptions).Command)
	return nil
}

// TestAttributes: admission is asked once about each request, and told what the client asked for and what is stored.
func TestAttributes(t *testing.T) {
	t.Parallel()
	asked := &told{}
	facts := &storage.FactsTable{}
	backend := memory.New(facts)
	served, err := catalog.New(t.Context(), catalog.Config{Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	api, err := rest.New(rest.Config{Scheme: scheme.New(), Admission: asked, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	scales, err := scale.New(served, schema.GroupResource{Group: "apps", Resource: "deployments"})
	if err != nil {
		t.Fatal(err)
	}
	bind, evict := binding.New(served, time.Now), eviction.New(served, time.Now)
	entries := assembletest.Entries(t, backend, slices.DeleteFunc(rows.All(), func(r resources.Row) bool {
		return !slices.Contains([]string{"pods", "deployments", "events", "leases", "bindings"}, r.Resource)
	}))
	for i := range entries {
		e := &entries[i]
		e.Handle = api.Handler
		if e.Store != nil {
			e.Store.Admission = asked
		}
		switch e.Row.Resource {
		case "bindings":
			e.Creater = bind
		case "deployments":
			e.Subresources["scale"] = registry.Answerer{ReadWriter: scales}
		case "pods":
			e.Subresources["binding"], e.Subresources["eviction"] = registry.Answerer{Creater: bind},
				registry.Answerer{Creater: evict}
			e.Subresources["exec"] = registry.Answerer{Connecter: execs{}}
		}
	}
	if err := served.Add(entries...); err != nil {
		t.Fatal(err)
	}
	const (
		merge       = "application/merge-patch+json"
		deployments = "/apis/apps/v1/namespaces/ns/deployments"
		event       = `"metadata":{"name":"e","namespace":"ns"},"%s":{"kind":"Pod","namespace":"ns","name":"p"},"reason":"r","action":"a","type":"Normal","eventTime":"2026-01-02T03:04:05.000000Z","reportingController":"k8s.io/c","reportingInstance":"i"}`
	)
	for _, c := range []struct{ method, url, media, body, want string }{
		{"POST", podsURL + "?fieldManager=m&fieldValidation=Strict", "application/json", podBody,
			`CREATE pods "p": Pod, v1.Pod, , meta.k8s.io/v1 CreateOptions mStrict`},
		{"PUT", podsURL + "/p?fieldManager=m", "application/json", podBody,
			`UPDATE pods "p": Pod, v1.Pod, v1.Pod, meta.k8s.io/v1 UpdateOptions m`},
		{"PATCH", podsURL + "/p?fieldManager=m", merge, `{"metadata":{"labels":{"a":"b"}}}`,
			`UPDATE pods "p": Pod, v1.Pod, v1.Pod, meta.k8s.io/v1 UpdateOptions m`},
		{"PUT", podsURL + "/p/status", "application/json", podBody,
			`UPDATE pods/status "p": Pod, v1.Pod, v1.Pod, meta.k8s.io/v1 UpdateOptions `},
		{"GET", podsURL + "/p/exec?command=a&command=b", "", "",
			`CONNECT pods/exec "p": PodExecOptions, v1.PodExecOptions, , `},
		{"POST", podsURL + "/p/binding?fieldManager=m", "application/json",
			`{"metadata":{"name":"p"},"target":{"name":"n"}}`,
			`CREATE pods/binding "p": Binding, v1.Binding, , meta.k8s.io/v1 CreateOptions m`},
		{"POST", podsURL + "/p/eviction?dryRun=All", "application/json", `{"metadata":{"name":"p"}}`,
			`CREATE pods/eviction "p": Eviction, v1.Eviction, , meta.k8s.io/v1 CreateOptions `},
		{"POST", podsURL + "/p/eviction", "application/json", `{"metadata":{"name":"p"}}`,
			`CREATE pods/eviction "p": Eviction, v1.Eviction, , meta.k8s.io/v1 CreateOptions `},
		{"DELETE", podsURL + "/p?gracePeriodSeconds=0", "", "",
			`DELETE pods "p": Pod, , v1.Pod, meta.k8s.io/v1 DeleteOptions 0`},
		{"PUT", leases + "l?fieldManager=m", "application/json", `{"metadata":{"name":"l"},"spec":{}}`,
			`CREATE leases "l": Lease, v1.Lease, , meta.k8s.io/v1 CreateOptions m`},
		{"DELETE", strings.TrimSuffix(leases, "/"), "application/json",
			`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":7}`,
			`DELETE leases "l" of all: Lease, , v1.Lease, meta.k8s.io/v1 DeleteOptions 7`},
		{"POST", deployments, "application/json",
			`{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
			`CREATE deployments "d": Deployment, v1.Deployment, , meta.k8s.io/v1 CreateOptions `},
		{"PUT", deployments + "/d/scale", "application/json", `{"metadata":{"name":"d"},"spec":{"replicas":3}}`,
			`UPDATE deployments/scale "d": Scale, v1.Scale, v1.Scale, meta.k8s.io/v1 UpdateOptions `},
		{"PATCH", deployments + "/d/scale?fieldManager=m", merge, `{"spec":{"replicas":4}}`,
			`UPDATE deployments/scale "d": Scale, v1.Scale, v1.Scale, meta.k8s.io/v1 UpdateOptions m`},
		{"POST", "/apis/events.k8s.io/v1/namespaces/ns/events", "application/json",
			`{"apiVersion":"events.k8s.io/v1","kind":"Event",` + fmt.Sprintf(event, "regarding"),
			`CREATE events "e": Event asked for as events.k8s.io/v1, Kind=Event events.events.k8s.io, v1.Event, , meta.k8s.io/v1 CreateOptions `},
		{"PATCH", "/api/v1/namespaces/ns/events/e", merge, `{"metadata":{"labels":{"a":"b"}}}`,
			`UPDATE events "e": Event, v1.Event, v1.Event, meta.k8s.io/v1 UpdateOptions `},
	} {
		asked.lines = nil
		r := httptest.NewRequest(c.method, c.url, strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.media)
		info := rest.InfoOf(r)
		info.Served = served.Snapshot()
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r.WithContext(request.WithInfo(r.Context(), info)))
		if w.Code >= 300 || !slices.Equal(asked.lines, []string{c.want}) {
			t.Errorf("%s %s: %d %s\ntold %q\nwant %q", c.method, c.url, w.Code, w.Body, asked.lines, c.want)
		}
	}
}
