package openapi_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/api/scheme"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/openapi"
)

// TestCustomResourceOperations: what is said of the requests for a custom resource, as a real kube-apiserver v1.36.3
// says it of cert-manager's.
func TestCustomResourceOperations(t *testing.T) {
	t.Parallel()
	row := resources.Row{GVK: schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Issuer"},
		Resource: "issuers", Namespaced: true,
		StoragePath: "cert-manager.io/issuers", New: func() runtime.Object { return &unstructured.Unstructured{} },
		Subresources: []resources.Subresource{resources.Status(resources.Strategy{})}}
	s, err := openapi.New(openapi.Config{Catalog: assembletest.Catalog(t, []resources.Row{row}), Scheme: scheme.New(),
		Version: "v1.36.3"})
	if err != nil {
		t.Fatal(err)
	}
	type said struct {
		OperationID, Description string
		Tags                     []string
		RequestBody              struct{ Content map[string]any }
		Responses                map[string]struct{ Content map[string]any }
		Parameters               []struct{ Name, In, Description string }
	}
	var raw struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(get(t, s, "/openapi/v3/apis/cert-manager.io/v1").Body.Bytes(), &raw); err != nil {
		t.Fatal(err)
	}
	operation := func(path, method string) (got said) {
		t.Helper()
		if err := json.Unmarshal(raw.Paths[path][method], &got); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		return got
	}
	const list, object = "/apis/cert-manager.io/v1/namespaces/{namespace}/issuers",
		"/apis/cert-manager.io/v1/namespaces/{namespace}/issuers/{name}"
	plain := []string{"application/json", "application/yaml"}
	for _, c := range []struct {
		path, method, id, description string
		takes, gives, codes           []string
	}{
		{list, "get", "listCertManagerIoV1NamespacedIssuer", "list objects of kind Issuer", nil, plain,
			[]string{"200", "401"}},
		{list, "post", "createCertManagerIoV1NamespacedIssuer", "create an Issuer", plain, plain,
			[]string{"200", "201", "202", "401"}},
		{list, "delete", "deleteCertManagerIoV1CollectionNamespacedIssuer", "delete collection of Issuer", nil, plain,
			[]string{"200", "401"}},
		{object, "get", "readCertManagerIoV1NamespacedIssuer", "read the specified Issuer", nil, plain,
			[]string{"200", "401"}},
		{object, "patch", "patchCertManagerIoV1NamespacedIssuer", "partially update the specified Issuer",
			[]string{"application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"},
			plain, []string{"200", "401"}},
		{object, "delete", "deleteCertManagerIoV1NamespacedIssuer", "delete an Issuer", plain, plain,
			[]string{"200", "202", "401"}},
		{object + "/status", "patch", "patchCertManagerIoV1NamespacedIssuerStatus",
			"partially update status of the specified Issuer",
			[]string{"application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"},
			plain, []string{"200", "401"}},
	} {
		got := operation(c.path, c.method)
		if got.OperationID != c.id || got.Description != c.description ||
			!slices.Equal(got.Tags, []string{"certManagerIo_v1"}) {
			t.Errorf("%s %s: %s, %q, %q", c.method, c.path, got.OperationID, got.Description, got.Tags)
		}
		for what, pair := range map[string][2][]string{
			"takes":   {c.takes, slices.Sorted(maps.Keys(got.RequestBody.Content))},
			"gives":   {c.gives, slices.Sorted(maps.Keys(got.Responses["200"].Content))},
			"answers": {c.codes, slices.Sorted(maps.Keys(got.Responses))},
		} {
			if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
				t.Errorf("%s %s %s: %s", c.method, c.path, what, diff)
			}
		}
	}
	// Parameters that all requests of a path have stand with the path; the words are those of the options' fields.
	type parameter struct{ Name, In, Description string }
	for _, c := range []struct {
		path, method string
		want         []string
	}{
		{object, "parameters", []string{"name", "namespace", "pretty"}},
		{object, "get", []string{"resourceVersion"}},
		{object, "put", []string{"dryRun", "fieldManager", "fieldValidation"}},
		{"/apis/cert-manager.io/v1/issuers", "get", nil},
		{"/apis/cert-manager.io/v1/issuers", "parameters",
			[]string{"allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "pretty",
				"resourceVersion", "resourceVersionMatch", "sendInitialEvents", "shardSelector", "timeoutSeconds",
				"watch"}},
	} {
		var params []parameter
		if c.method == "parameters" {
			if err := json.Unmarshal(raw.Paths[c.path][c.method], &params); err != nil {
				t.Fatal(err)
			}
		} else {
			for _, p := range operation(c.path, c.method).Parameters {
				params = append(params, parameter(p))
			}
		}
		var names []string
		for _, p := range params {
			names = append(names, p.Name)
			if words := (metav1.ListOptions{}).SwaggerDoc()[p.Name]; words != "" && p.Description != words {
				t.Errorf("%s: %q", p.Name, p.Description)
			}
		}
		if diff := cmp.Diff(c.want, names); diff != "" {
			t.Errorf("%s %s: %s", c.method, c.path, diff)
		}
	}
}
