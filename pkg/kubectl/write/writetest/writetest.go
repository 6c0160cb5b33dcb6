// Package writetest runs a kubectl verb, one that writes or one that only reads, against a small API server in memory.
package writetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"bonsai/api/kubeversion"
	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/write"
)

// Server keeps objects by path and logs each request that is not a discovery as "VERB path?query body".
type Server struct {
	URL string
	// Conflict refuses server-side applies without force, with this message; set it before the first request.
	Conflict string

	mu      sync.Mutex // guards what follows
	objects map[string]map[string]any
	log     []string
	version int
}

// served are the resources the server knows.
func served() map[string][]metav1.APIResource {
	verbs := metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	return map[string][]metav1.APIResource{
		"v1": {
			{Name: "configmaps", SingularName: "configmap", Kind: "ConfigMap", Namespaced: true,
				ShortNames: []string{"cm"}, Verbs: verbs},
			{Name: "events", SingularName: "event", Kind: "Event", Namespaced: true, ShortNames: []string{"ev"},
				Verbs: verbs},
			{Name: "limitranges", SingularName: "limitrange", Kind: "LimitRange", Namespaced: true,
				ShortNames: []string{"limits"}, Verbs: verbs},
			{Name: "namespaces", SingularName: "namespace", Kind: "Namespace", ShortNames: []string{"ns"},
				Verbs: verbs},
			{Name: "nodes", SingularName: "node", Kind: "Node", ShortNames: []string{"no"}, Verbs: verbs},
			{Name: "persistentvolumes", SingularName: "persistentvolume", Kind: "PersistentVolume",
				ShortNames: []string{"pv"}, Verbs: verbs},
			{Name: "pods", SingularName: "pod", Kind: "Pod", Namespaced: true, ShortNames: []string{"po"},
				Verbs: verbs},
			{Name: "resourcequotas", SingularName: "resourcequota", Kind: "ResourceQuota", Namespaced: true,
				ShortNames: []string{"quota"}, Verbs: verbs},
			{Name: "services", SingularName: "service", Kind: "Service", Namespaced: true, ShortNames: []string{"svc"},
				Verbs: verbs},
		},
		"apps/v1": {
			{Name: "controllerrevisions", SingularName: "controllerrevision", Kind: "ControllerRevision",
				Namespaced: true, Verbs: verbs},
			{Name: "daemonsets", SingularName: "daemonset", Kind: "DaemonSet", Namespaced: true,
				ShortNames: []string{"ds"}, Verbs: verbs},
			{Name: "deployments", SingularName: "deployment", Kind: "Deployment", Namespaced: true,
				ShortNames: []string{"deploy"}, Verbs: verbs},
			{Name: "deployments/scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Namespaced: true,
				Verbs: metav1.Verbs{"get", "patch", "update"}},
			{Name: "replicasets", SingularName: "replicaset", Kind: "ReplicaSet", Namespaced: true,
				ShortNames: []string{"rs"}, Verbs: verbs},
		},
		"autoscaling/v2": {
			{Name: "horizontalpodautoscalers", SingularName: "horizontalpodautoscaler", Kind: "HorizontalPodAutoscaler",
				Namespaced: true, ShortNames: []string{"hpa"}, Verbs: verbs},
		},
		"certificates.k8s.io/v1": {
			{Name: "certificatesigningrequests", SingularName: "certificatesigningrequest",
				Kind: "CertificateSigningRequest", ShortNames: []string{"csr"}, Verbs: verbs},
		},
		"discovery.k8s.io/v1": {
			{Name: "endpointslices", SingularName: "endpointslice", Kind: "EndpointSlice", Namespaced: true,
				Verbs: verbs},
		},
		"rbac.authorization.k8s.io/v1": {
			{Name: "clusterroles", SingularName: "clusterrole", Kind: "ClusterRole", Verbs: verbs},
		},
		"batch/v1": {
			{Name: "cronjobs", SingularName: "cronjob", Kind: "CronJob", Namespaced: true, ShortNames: []string{"cj"},
				Verbs: verbs},
			{Name: "jobs", SingularName: "job", Kind: "Job", Namespaced: true, Verbs: verbs},
		},
	}
}

// NewServer starts a server that holds objects (JSON, with their kind and, for namespaced ones, namespace).
func NewServer(t *testing.T, objects ...string) *Server {
	t.Helper()
	s := &Server{objects: map[string]map[string]any{}}
	for _, text := range objects {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatalf("object %s: %v", text, err)
		}
		s.put(pathOf(u), u.Object)
	}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// Log returns the requests so far.
func (s *Server) Log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

// Object returns the object at path as JSON, "" if there is none.
func (s *Server) Object(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[path]
	if !ok {
		return ""
	}
	data, _ := json.Marshal(o)
	return string(data)
}

func pathOf(u *unstructured.Unstructured) string {
	gv := u.GetAPIVersion()
	root := "/apis/" + gv
	if !strings.Contains(gv, "/") {
		root = "/api/" + gv
	}
	if ns := u.GetNamespace(); ns != "" {
		root += "/namespaces/" + ns
	}
	for _, r := range served()[gv] {
		if r.Kind == u.GetKind() {
			root += "/" + r.Name
		}
	}
	return root + "/" + u.GetName()
}

func (s *Server) put(path string, o map[string]any) {
	s.version++
	m, _ := o["metadata"].(map[string]any)
	m["resourceVersion"] = fmt.Sprint(s.version)
	if m["uid"] == nil {
		m["uid"] = fmt.Sprintf("uid-%d", s.version)
	}
	s.objects[path] = o
}

// ServeHTTP answers discovery, reads and writes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.discovery(w, r) {
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.log = append(s.log, strings.TrimSpace(
		fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), bytes.TrimSpace(body))))
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, "", body)
	case http.MethodDelete:
		if _, ok := s.objects[r.URL.Path]; !ok {
			notFound(w, r)
			return
		}
		delete(s.objects, r.URL.Path)
		reply(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusSuccess})
	default:
		s.object(w, r, body)
	}
}

// post creates an object, at path or, if that is empty, below the request's.
func (s *Server) post(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		reply(w, http.StatusBadRequest, metav1.Status{Message: err.Error()})
		return
	}
	u := &unstructured.Unstructured{Object: o}
	if path == "" {
		path = r.URL.Path + "/" + u.GetName()
	}
	if _, ok := s.objects[path]; ok {
		reply(w, http.StatusConflict,
			failure(r, metav1.StatusReasonAlreadyExists, http.StatusConflict, "already exists"))
		return
	}
	if r.URL.Query().Get("dryRun") == "" {
		s.put(path, o)
	}
	reply(w, http.StatusCreated, o)
}

// object reads, replaces or patches what is at the path; a path of a collection is listed.
func (s *Server) object(w http.ResponseWriter, r *http.Request, body []byte) {
	path := strings.TrimSuffix(strings.TrimSuffix(r.URL.Path, "/scale"), "/approval")
	o, ok := s.objects[path]
	if !ok && r.Method == http.MethodGet && s.collection(w, path) {
		return
	}
	applies := types.PatchType(r.Header.Get("Content-Type")) == types.ApplyPatchType
	if applies && s.Conflict != "" && r.URL.Query().Get("force") != "true" {
		reply(w, http.StatusConflict,
			metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonConflict, Code: http.StatusConflict, Message: s.Conflict})
		return
	}
	if !ok && applies {
		s.post(w, r, path, body)
		return
	}
	if !ok {
		notFound(w, r)
		return
	}
	u := &unstructured.Unstructured{Object: o}
	var err error
	after := u.DeepCopy()
	switch r.Method {
	case http.MethodPut:
		err = json.Unmarshal(body, &after.Object)
	case http.MethodPatch:
		after, err = patched(types.PatchType(r.Header.Get("Content-Type")), u, body)
	}
	if err != nil {
		reply(w, http.StatusBadRequest, metav1.Status{Message: err.Error()})
		return
	}
	if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" {
		s.put(path, after.Object)
	}
	reply(w, http.StatusOK, after.Object)
}

func patched(kind types.PatchType, u *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
	data, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if kind == types.StrategicMergePatchType {
		data, err = strategicpatch.StrategicMergePatch(data, patch, write.Typed(u.GroupVersionKind()))
	} else if kind == types.JSONPatchType {
		var ops jsonpatch.Patch
		if ops, err = jsonpatch.DecodePatch(patch); err == nil {
			data, err = ops.Apply(data)
		}
	} else {
		data, err = jsonpatch.MergePatch(data, patch)
	}
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON(data)
}

// collection lists what is below path.
func (s *Server) collection(w http.ResponseWriter, path string) bool {
	for gv, list := range served() {
		for _, r := range list {
			if !strings.HasSuffix(path, "/"+r.Name) {
				continue
			}
			items := []any{}
			for p, o := range s.objects {
				parent := path[:strings.LastIndex(path, "/")+1]
				if strings.HasPrefix(p, parent) && strings.Contains(p, "/"+r.Name+"/") {
					items = append(items, o)
				}
			}
			reply(w, http.StatusOK, map[string]any{"kind": r.Kind + "List", "apiVersion": gv,
				"metadata": map[string]any{}, "items": items})
			return true
		}
	}
	return false
}

func (s *Server) discovery(w http.ResponseWriter, r *http.Request) bool {
	switch p := r.URL.Path; p {
	case "/api":
		reply(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
			Versions: []string{"v1"}})
	case "/apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, group := range []string{"apps", "autoscaling", "batch", "certificates.k8s.io", "discovery.k8s.io"} {
			v := metav1.GroupVersionForDiscovery{GroupVersion: group + "/v1", Version: "v1"}
			if group == "autoscaling" {
				v = metav1.GroupVersionForDiscovery{GroupVersion: group + "/v2", Version: "v2"}
			}
			list.Groups = append(list.Groups,
				metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
		}
		reply(w, http.StatusOK, list)
	case "/api/v1", "/apis/apps/v1", "/apis/autoscaling/v2", "/apis/batch/v1", "/apis/certificates.k8s.io/v1",
		"/apis/discovery.k8s.io/v1":
		gv := strings.TrimPrefix(strings.TrimPrefix(p, "/apis/"), "/api/")
		reply(w, http.StatusOK, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv,
			APIResources: served()[gv],
		})
	default:
		return false
	}
	return true
}

func reply(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // the client sees a broken answer
}

func notFound(w http.ResponseWriter, r *http.Request) {
	reply(w, http.StatusNotFound, failure(r, metav1.StatusReasonNotFound, http.StatusNotFound, "not found"))
}

func failure(r *http.Request, reason metav1.StatusReason, code int32, what string) metav1.Status {
	parts := strings.Split(r.URL.Path, "/")
	name, kind := parts[len(parts)-1], parts[len(parts)-2]
	if r.Method == http.MethodPost {
		name, kind = "object", parts[len(parts)-1]
	}
	group := schema.GroupResource{Resource: kind}
	if parts[1] == "apis" {
		group.Group = parts[2]
	}
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason,
		Code:    code,
		Message: fmt.Sprintf("%s %q %s", group, name, what), Details: &metav1.StatusDetails{Name: name, Kind: kind},
	}
}

// Run runs "kubectl args…" with the one command that newCommand makes, against the server at url ("" for none), and
// returns what it wrote (output, then errors) and the exit code.
func Run(t *testing.T, newCommand func(*cli.Factory, cli.IOStreams) *cobra.Command, url, stdin string,
	args ...string) (string, int) {
	t.Helper()
	if url == "" {
		url = "http://127.0.0.1:1"
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, url)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	streams := cli.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut}
	f := cli.NewFactory(kubeversion.Release, streams)
	root := &cobra.Command{Use: "kubectl", SilenceErrors: true, SilenceUsage: true}
	root.SetOut(&out)
	root.SetErr(&errOut)
	f.AddFlags(root.PersistentFlags())
	root.AddCommand(newCommand(f, streams))
	root.SetArgs(append([]string{"--kubeconfig", config, "--cache-dir", filepath.Join(dir, "cache")}, args...))
	code := cli.Report(&errOut, root.ExecuteContext(t.Context()))
	return out.String() + errOut.String(), code
}
