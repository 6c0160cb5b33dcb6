package customresource

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"bonsai/api/apiextensions/referencetest"
)

const (
	openAPISchemas = "testdata/openapi/schemas.yaml"
	openAPIAnswers = "testdata/openapi/answers.yaml"
)

// TestOpenAPI: what is published is what a real API server published of the same definitions.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	var kinds []replayed
	referencetest.Read(t, openAPISchemas, &kinds)
	answers := map[string]map[string]any{}
	referencetest.Read(t, openAPIAnswers, &answers)
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			s, err := OpenAPI(k.crd(), "v1")
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := yaml.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			dropCommon(got)
			want := answers[k.Name]
			if want == nil {
				t.Fatal("no answer: record it")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-reference +ours:\n%s", diff)
			}
		})
	}
	if s, err := OpenAPI(kinds[0].crd(), "v9"); err == nil {
		t.Error("a version that is not there:", s)
	}
}

// recordOpenAPI keeps what a real API server publishes of a kind, without what it adds to all: apiVersion, kind and metadata.
func recordOpenAPI(t *testing.T, server *referencetest.Server, k *replayed) map[string]any {
	t.Helper()
	var schema map[string]any
	err := server.Wait("/openapi/v3/apis/replay.example.com/v1", func(a referencetest.Answer) bool {
		if a.Code != http.StatusOK {
			return false
		}
		all := a.Object["components"].(map[string]any)["schemas"].(map[string]any)
		schema, _ = all["com.example.replay.v1.K"+k.Name].(map[string]any)
		return schema != nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(schema, "x-kubernetes-group-version-kind")
	dropCommon(schema)
	return schema
}

// dropCommon drops what is the same for all kinds, and not the schema's to say.
func dropCommon(schema map[string]any) {
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(schema["properties"].(map[string]any), name)
	}
}

// TestRecordOpenAPI asks a real API server, when it is told of one, and keeps its answers.
func TestRecordOpenAPI(t *testing.T) {
	server := reference.Server()
	if server == nil {
		t.Skip("SKIPPED: no -reference")
	}
	var kinds []replayed
	referencetest.Read(t, openAPISchemas, &kinds)
	answers := map[string]map[string]any{}
	for _, k := range kinds {
		record(t, server, &k)
		answers[k.Name] = recordOpenAPI(t, server, &k)
	}
	referencetest.Write(t, openAPIAnswers, answers)
}
