package registry_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/registry"
)

// TestStoredAsGiven: what is read from storage is what was written, of every kind and with all its defaults: then an
// update that changes nothing is one.
func TestStoredAsGiven(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../api/resources/rows/testdata/create.yaml")
	if err != nil {
		t.Fatal(err)
	}
	byKind := map[schema.GroupVersionKind]*resources.Row{}
	for _, row := range rows.All() {
		if !row.NotStored && row.Stored == nil {
			byKind[row.GVK] = &row
		}
	}
	tried := map[schema.GroupVersionKind]bool{}
	for i, doc := range bytes.Split(text, []byte("\n---\n")) {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(doc, &head); err != nil {
			t.Fatalf("document %d: %v", i, err)
		}
		kind := schema.FromAPIVersionAndKind(head.APIVersion, head.Kind)
		row := byKind[kind]
		if row == nil {
			continue
		}
		c := registry.NewCodec(row)
		obj := c.New()
		if err := yaml.Unmarshal(doc, obj); err != nil {
			continue // a document that is refused
		}
		if row.Strategy.Default != nil {
			row.Strategy.Default(obj)
		}
		stored, err := c.Draft(obj)
		if err != nil {
			t.Fatalf("document %d: %v", i, err)
		}
		back, err := c.Decode(stored.Value, 0)
		if err != nil {
			t.Fatalf("document %d: %v", i, err)
		}
		if !apiequality.Semantic.DeepEqual(obj, back) {
			t.Errorf("document %d: %s", i, cmp.Diff(obj, back))
		}
		tried[kind] = true
	}
	if len(tried) < 20 {
		t.Errorf("tried only %d kinds", len(tried))
	}
}
