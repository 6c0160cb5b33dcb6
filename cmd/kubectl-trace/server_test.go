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

	"bonsai/api/traces"
	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/story/storytest"
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

func serve(t *testing.T, s *server) *server {
	t.Helper()
	answers := map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`,
		"/api/v1": fmt.Sprintf(resources, "v1", strings.Join([]string{apiResource("pods", "Pod", "po", true),
			apiResource("nodes", "Node", "no", false), apiResource("configmaps", "ConfigMap", "cm", true)}, ",")),
		"/apis/apps/v1": fmt.Sprintf(resources, "apps/v1", apiResource("deployments", "Deployment", "deploy", true)+","+
			apiResource("replicasets", "ReplicaSet", "rs", true)),
	}
	if s.served {
		answers["/apis/traces.bonsai.io/v1alpha1"] = fmt.Sprintf(resources, "traces.bonsai.io/v1alpha1", "")
	}
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
		if since := r.URL.Query().Get("since"); since != "" {
			if _, err := time.ParseDuration(since); err != nil {
				t.Errorf("since: %v", err)
			}
		}
		rest, ok := strings.CutPrefix(path, "/apis/traces.bonsai.io/v1alpha1/")
		if ok && s.served && s.answer(w, rest) {
			return
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

// answer answers as bonsai-traces: a trace by its UID with its spans, or a list without them.
func (s *server) answer(w http.ResponseWriter, rest string) bool {
	parts := strings.Split(rest, "/")
	if n := len(parts); n == 4 { // namespaces/NS/traces/UID
		for _, t := range s.traces {
			if t.Name == parts[3] && t.Namespace == parts[1] {
				return json.NewEncoder(w).Encode(t) == nil
			}
		}
		return false
	}
	list := traces.TraceList{}
	for _, t := range s.traces {
		short := *t
		short.Spans = nil
		if len(parts) == 1 || t.Namespace == parts[1] {
			list.Items = append(list.Items, short)
		}
	}
	return json.NewEncoder(w).Encode(list) == nil
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
