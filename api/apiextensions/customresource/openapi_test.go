package customresource

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"bonsai/api/apiextensions/referencetest"
	"bonsai/api/openapi"
)

const (
	openAPISchemas = "testdata/openapi/schemas.yaml"
	openAPIAnswers = "testdata/openapi/answers.yaml"
)

// definitions are what is said of a kind and of its lists, by the name of the definition.
type definitions map[string]any

// openAPIAnswer is what one kind is published as.
type openAPIAnswer struct {
	V2 definitions `json:"v2"`
	V3 definitions `json:"v3"`
}

// names are the definitions of a kind.
func (k *replayed) names() []string {
	return []string{"com.example.replay.v1.K" + k.Name, "com.example.replay.v1.K" + k.Name + "List"}
}

// TestOpenAPI: what is published is what a real API server published of the same definitions.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	var kinds []replayed
	referencetest.Read(t, openAPISchemas, &kinds)
	answers := map[string]openAPIAnswer{}
	referencetest.Read(t, openAPIAnswers, &answers)
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			got := openAPIAnswer{V2: k.published(t, openapi.V2), V3: k.published(t, openapi.V3)}
			if diff := cmp.Diff(answers[k.Name], got); diff != "" {
				t.Errorf("-reference +ours:\n%s", diff)
			}
		})
	}
	if s, err := OpenAPI(kinds[0].crd(), "v9"); err == nil {
		t.Error("a version that is not there:", s)
	}
}

// published is what our server publishes.
func (k *replayed) published(t *testing.T, version openapi.Version) definitions {
	t.Helper()
	b := openapi.NewBuilder(runtime.NewScheme(), version)
	gvk := schema.GroupVersionKind{Group: "replay.example.com", Version: "v1", Kind: "K" + k.Name}
	own := func() (*spec.Schema, error) { return OpenAPI(k.crd(), "v1") }
	if _, err := b.AddDynamicList(gvk.Kind+"List", k.Name+"s", gvk, own); err != nil {
		t.Fatal(err)
	}
	out := definitions{}
	for _, name := range k.names() {
		raw, err := json.Marshal(b.Definitions()[name])
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := yaml.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		out[name] = v
	}
	return out
}

// TestRecordOpenAPI asks a real API server, when it is told of one, and keeps its answers.
func TestRecordOpenAPI(t *testing.T) {
	server := reference.Server()
	if server == nil {
		t.Skip("SKIPPED: no -reference")
	}
	var kinds []replayed
	referencetest.Read(t, openAPISchemas, &kinds)
	answers := map[string]openAPIAnswer{}
	for _, k := range kinds {
		record(t, server, &k)
		find := func(path string, below ...string) definitions {
			t.Helper()
			found := definitions{}
			if err := server.Wait(path, func(a referencetest.Answer) bool {
				all := a.Object
				for _, name := range below {
					all, _ = all[name].(map[string]any)
				}
				for _, name := range k.names() {
					if all[name] == nil {
						return false
					}
					found[name] = all[name]
				}
				return a.Code == http.StatusOK
			}); err != nil {
				t.Fatal(err)
			}
			return found
		}
		answers[k.Name] = openAPIAnswer{V2: find("/openapi/v2", "definitions"),
			V3: find("/openapi/v3/apis/replay.example.com/v1", "components", "schemas")}
	}
	referencetest.Write(t, openAPIAnswers, answers)
}
