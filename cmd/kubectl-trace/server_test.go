package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/traces"
	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/story/storytest"
	store "bonsai/pkg/traces"
	"bonsai/pkg/traces/serve"
)

// server is an API server with the objects of a file, and with traces of its own unless it is nil. It refuses
// everything but reading.
type server struct {
	objects map[string]json.RawMessage // by path, lists without their query
	traces  []*traces.Trace
	served  bool // traces.bonsai.io
	// refused are paths that the caller may not read.
	refused []string
	url     string
}

const resources = `{"kind":"APIResourceList","groupVersion":%q,"resources":[%s]}`

func apiResource(name, kind, short string, namespaced bool) string {
	return fmt.Sprintf(`{"name":%q,"singularName":%q,"namespaced":%t,"kind":%q,"shortNames":[%q],"verbs":["get","list"]}`,
		name, strings.ToLower(kind), namespaced, kind, short)
}

func apiGroup(name string) string {
	return fmt.Sprintf(`{"name":%q,"versions":[{"groupVersion":"%[1]s/v1","version":"v1"}],`+
		`"preferredVersion":{"groupVersion":"%[1]s/v1","version":"v1"}}`, name)
}

func start(t *testing.T, s *server) *server {
	t.Helper()
	answers := map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + apiGroup("apps") + "," + apiGroup("batch") + "]}",
		"/api/v1": fmt.Sprintf(resources, "v1", strings.Join([]string{apiResource("pods", "Pod", "po", true),
			apiResource("nodes", "Node", "no", false), apiResource("configmaps", "ConfigMap", "cm", true)}, ",")),
		"/apis/apps/v1": fmt.Sprintf(resources, "apps/v1", apiResource("deployments", "Deployment", "deploy", true)+","+
			apiResource("replicasets", "ReplicaSet", "rs", true)+","+apiResource("statefulsets", "StatefulSet", "sts", true)),
		"/apis/batch/v1": fmt.Sprintf(resources, "batch/v1", apiResource("jobs", "Job", "job", true)),
	}
	if s.served {
		answers["/apis/traces.bonsai.io/v1alpha1"] = fmt.Sprintf(resources, "traces.bonsai.io/v1alpha1", "")
	}
	everything := func(*http.Request, string, schema.GroupResource, string) (bool, error) { return true, nil }
	group := serve.New(kept(s.traces), everything, func(*http.Request) string { return "" }, now)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s: it writes", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		path := r.URL.Path
		if slices.Contains(s.refused, path) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"not allowed","code":403}`)
			return
		}
		if answer, ok := answers[path]; ok {
			fmt.Fprint(w, answer)
			return
		}
		const below = "/apis/traces.bonsai.io/v1alpha1/"
		if s.served && strings.HasPrefix(path, below) {
			group.Paths()[below].ServeHTTP(w, r)
			return
		}
		if path == "/api/v1/pods" { // all that there are
			path = "/api/v1/namespaces/default/pods"
		}
		if object, ok := s.objects[path]; ok {
			_, _ = w.Write(object)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":%q,"code":404}`,
			filepath.Base(path)+" not found")
	}))
	t.Cleanup(h.Close)
	s.url = h.URL
	return s
}

// kept are traces as the store has them, for the handler of bonsai-traces.
type kept []*traces.Trace

// Get implements serve.Reader.
func (k kept) Get(uid types.UID) (*traces.Trace, bool) {
	i := slices.IndexFunc(k, func(t *traces.Trace) bool { return t.Name == string(uid) })
	if i < 0 {
		return nil, false
	}
	found := *k[i] // the handler sets its kind
	return &found, true
}

// List implements serve.Reader.
func (k kept) List(q store.Query) (out store.Page) {
	for _, t := range k {
		if (q.Namespace == "" || t.Namespace == q.Namespace) && (q.Kind == "" || t.Object.Kind == q.Kind) &&
			(q.Name == "" || t.Object.Name == q.Name) && t.LastSeen.UnixNano() >= q.Since {
			short := *t
			short.Spans = nil
			out.Traces = append(out.Traces, short)
		}
	}
	return out
}

// Resources implements serve.Reader.
func (k kept) Resources(store.Query) []schema.GroupResource {
	return []schema.GroupResource{{Resource: "pods"}}
}

// recorded reads the objects of a file in testdata, by their paths.
func recorded(t *testing.T, name string) map[string]json.RawMessage {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// now is ten minutes after the traces of storytest begin.
func now() time.Time { return storytest.Zero().Add(10 * time.Minute) }

// ask runs the command against s, with a terminal of so many columns, 0 for a pipe.
func (s *server) ask(t *testing.T, columns int, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty") // whoever runs the test may have a kubeconfig
	if err := os.WriteFile(empty, []byte(`{"apiVersion":"v1","kind":"Config"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code = run(t.Context(), append(args, "--server", s.url, "--kubeconfig", empty, "--cache-dir", dir),
		terminal{IOStreams: cli.IOStreams{In: strings.NewReader(""), Out: &o, ErrOut: &e}, columns: columns, now: now})
	return code, o.String(), e.String()
}
