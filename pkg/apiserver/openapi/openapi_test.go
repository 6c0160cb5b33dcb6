package openapi_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"

	"bonsai/api/resources/rows"
	"bonsai/api/scheme"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/openapi"
)

func service(t *testing.T) *openapi.Service {
	t.Helper()
	s, err := openapi.New(openapi.Config{Catalog: assembletest.Catalog(t, rows.All()), Scheme: scheme.New(),
		Issuer: true, Version: "v1.36.3"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func get(t *testing.T, s *openapi.Service, url string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, url, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	if own, err := s.Serve(w, r); err != nil || !own {
		t.Fatalf("%s: served %v, %v", url, own, err)
	}
	return w
}

func TestV2(t *testing.T) {
	t.Parallel()
	s := service(t)
	var doc struct {
		Swagger     string
		Paths       map[string]map[string]any
		Definitions map[string]any
	}
	if err := json.Unmarshal(get(t, s, "/openapi/v2").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Swagger != "2.0" || doc.Definitions["io.k8s.api.core.v1.Pod"] == nil {
		t.Errorf("swagger %q, %d definitions", doc.Swagger, len(doc.Definitions))
	}
	for _, c := range []struct{ path, method, id string }{
		{"/api/v1/pods", "get", "listCoreV1PodForAllNamespaces"},
		{"/api/v1/namespaces/{namespace}/pods", "get", "listCoreV1NamespacedPod"},
		{"/api/v1/namespaces/{namespace}/pods", "delete", "deleteCoreV1CollectionNamespacedPod"},
		{"/api/v1/namespaces/{namespace}/pods/{name}", "patch", "patchCoreV1NamespacedPod"},
		{"/api/v1/namespaces/{namespace}/pods/{name}/status", "put", "replaceCoreV1NamespacedPodStatus"},
		{"/api/v1/namespaces/{namespace}/pods/{name}/exec", "post", "connectCoreV1PostNamespacedPodExec"},
		{"/api/v1/namespaces/{namespace}/pods/{name}/binding", "post", "createCoreV1NamespacedPodBinding"},
		{"/api/v1/nodes/{name}", "get", "readCoreV1Node"},
		{"/api/v1/namespaces/{namespace}/pods/{name}/proxy/{path}", "options",
			"connectCoreV1OptionsNamespacedPodProxyWithPath"},
		{"/api/v1/watch/pods", "get", "watchCoreV1PodListForAllNamespaces"},
		{"/api/v1/watch/namespaces/{namespace}/pods", "get", "watchCoreV1NamespacedPodList"},
		{"/api/v1/watch/nodes/{name}", "get", "watchCoreV1Node"},
		{"/api/", "get", "getCoreAPIVersions"},
		{"/apis/", "get", "getAPIVersions"},
		{"/apis/rbac.authorization.k8s.io/", "get", "getRbacAuthorizationAPIGroup"},
		{"/apis/apps/v1/", "get", "getAppsV1APIResources"},
		{"/version/", "get", "getCodeVersion"},
		{"/openid/v1/jwks/", "get", "getServiceAccountIssuerOpenIDKeyset"},
		{"/.well-known/openid-configuration/", "get", "getServiceAccountIssuerOpenIDConfiguration"},
		{"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale", "get", "readAppsV1NamespacedDeploymentScale"},
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles", "post", "createRbacAuthorizationV1ClusterRole"},
	} {
		operation, _ := doc.Paths[c.path][c.method].(map[string]any)
		if got := operation["operationId"]; got != c.id {
			t.Errorf("%s %s: operationId %v, want %s", c.method, c.path, got, c.id)
		}
	}
}

// TestSharedParameters: the document of OpenAPI 2 describes a parameter once, and operations refer to it by the name
// that Kubernetes gives it; every reference leads somewhere. What is of one kind, and what old clients look for, stands
// in the operation.
func TestSharedParameters(t *testing.T) {
	t.Parallel()
	var doc struct {
		Parameters map[string]struct{ Name, In, Description string }
		Paths      map[string]map[string]json.RawMessage
	}
	body := get(t, service(t), "/openapi/v2").Body.Bytes()
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	follow := func(raw json.RawMessage, where string) {
		var all []struct {
			Ref      string `json:"$ref"`
			Name, In string
		}
		if err := json.Unmarshal(raw, &all); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		for _, q := range all {
			name, ok := strings.CutPrefix(q.Ref, "#/parameters/")
			if own := q.Name == "name" || q.Name == "dryRun" || q.Name == "fieldValidation" || q.In == "body"; own {
				if ok {
					t.Errorf("%s: parameter %+v is shared", where, q)
				}
				continue
			}
			if p := doc.Parameters[name]; !ok || p.Name == "" || p.In == "" || p.Description == "" && p.In != "body" {
				t.Errorf("%s: parameter %+v leads to %+v", where, q, p)
			}
			seen[name] = true
		}
	}
	for path, item := range doc.Paths {
		for key, raw := range item {
			if key == "parameters" {
				follow(raw, path)
				continue
			}
			var op struct{ Parameters json.RawMessage }
			if err := json.Unmarshal(raw, &op); err != nil {
				t.Fatal(err)
			}
			if op.Parameters != nil {
				follow(op.Parameters, path+" "+key)
			}
		}
	}
	// as a real kube-apiserver v1.36.3 names them
	for _, name := range []string{"body-2Y1dVQaQ", "body-78PwaGsr", "command-Py3eQybp", "limit-1NfNmdNH",
		"path-QCf0eosM", "pretty-tJGM1-ng", "shardSelector-Kgyki_3_", "tailLines-9xQLWHMV"} {
		if doc.Parameters[name].Name == "" {
			t.Errorf("there is no parameter %s", name)
		}
	}
	if len(doc.Parameters) != 47 {
		t.Errorf("%d parameters", len(doc.Parameters))
	}
	for name := range doc.Parameters {
		if !seen[name] {
			t.Errorf("no operation has parameter %s", name)
		}
	}
	t.Logf("%d bytes", len(body))
}

// Clients before 1.25 ask for protobuf by a name with "@"; gnostic must be able to read it back.
func TestProtobuf(t *testing.T) {
	t.Parallel()
	s := service(t)
	for _, accept := range []string{"application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
		"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"} {
		w := get(t, s, "/openapi/v2", "Accept", accept)
		doc := &openapi_v2.Document{}
		if err := proto.Unmarshal(w.Body.Bytes(), doc); err != nil {
			t.Fatal(err)
		}
		if n := len(doc.GetDefinitions().GetAdditionalProperties()); n < 100 {
			t.Errorf("%s: %d definitions", accept, n)
		}
	}
	w := get(t, s, "/openapi/v3/apis/apps/v1", "Accept", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf")
	doc := &openapi_v3.Document{}
	if err := proto.Unmarshal(w.Body.Bytes(), doc); err != nil {
		t.Fatal(err)
	}
	if doc.GetOpenapi() != "3.0.0" || len(doc.GetPaths().GetPath()) == 0 {
		t.Errorf("v3 protobuf: version %q, %d paths", doc.GetOpenapi(), len(doc.GetPaths().GetPath()))
	}
}

func TestV3IndexLeadsToDocuments(t *testing.T) {
	t.Parallel()
	s := service(t)
	var index struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		}
	}
	if err := json.Unmarshal(get(t, s, "/openapi/v3").Body.Bytes(), &index); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"api/v1", "apis/apps/v1", "apis/authorization.k8s.io/v1", "apis/events.k8s.io/v1",
		"api", "apis", "apis/apps", "version"} {
		url := index.Paths[path].ServerRelativeURL
		if !strings.HasPrefix(url, "/openapi/v3/"+path+"?hash=") {
			t.Errorf("%s: URL %q", path, url)
			continue
		}
		w := get(t, s, url)
		var doc struct {
			Components struct{ Schemas map[string]any }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || len(doc.Components.Schemas) == 0 {
			t.Errorf("%s: %d schemas, %v", path, len(doc.Components.Schemas), err)
		}
		if cc := w.Header().Get("Cache-Control"); !strings.Contains(cc, "immutable") {
			t.Errorf("%s: Cache-Control %q", path, cc)
		}
	}
}

func TestNegotiation(t *testing.T) {
	t.Parallel()
	s := service(t)
	w := get(t, s, "/openapi/v3/apis/apps/v1", "Accept-Encoding", "gzip")
	r, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(r); err != nil || !json.Valid(raw) {
		t.Errorf("gzip: valid JSON %v, %v", json.Valid(raw), err)
	}
	if w := get(t, s, "/openapi/v3/apis/apps/v1", "If-None-Match",
		w.Header().Get("ETag")); w.Code != http.StatusNotModified {
		t.Errorf("If-None-Match: %d", w.Code)
	}
	for _, url := range []string{"/openapi/v3/apis/none/v1", "/openapi", "/openapi/v4"} {
		if own, err := s.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, url, nil)); own ||
			err != nil {
			t.Errorf("%s: served %v, %v", url, own, err)
		}
	}
	bad := httptest.NewRequest(http.MethodGet, "/openapi/v2", nil)
	bad.Header.Set("Accept", "text/html")
	refused := httptest.NewRecorder()
	if own, err := s.Serve(refused, bad); !own || err != nil || refused.Code != http.StatusNotAcceptable ||
		refused.Header().Get("Vary") != "Accept" || refused.Body.Len() != 0 {
		t.Errorf("text/html: served %v, %v, %d %v", own, err, refused.Code, refused.Header())
	}
}
