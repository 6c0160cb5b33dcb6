package get

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSortItems(t *testing.T) {
	t.Parallel()
	var items []unstructured.Unstructured
	for _, n := range []string{"a10", "a2", "b1"} {
		items = append(items, unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": n}}})
	}
	if err := sortItems(items, ".metadata.name"); err != nil {
		t.Fatal(err)
	}
	if items[0].GetName() != "a10" || items[1].GetName() != "a2" || items[2].GetName() != "b1" {
		t.Errorf("order: %s %s %s", items[0].GetName(), items[1].GetName(), items[2].GetName())
	}
	if err := sortItems(items, ".nope"); err == nil {
		t.Error("a field that no object has was accepted")
	}
}

// TestSortQuantities: values that are quantities go by their size, as numbers do.
func TestSortQuantities(t *testing.T) {
	t.Parallel()
	var items []unstructured.Unstructured
	for _, n := range []string{"1Gi", "100", "9", "10"} {
		items = append(items, unstructured.Unstructured{
			Object: map[string]any{"metadata": map[string]any{"name": n}, "size": n}})
	}
	if err := sortItems(items, ".size"); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"9", "10", "100", "1Gi"} {
		if items[i].GetName() != want {
			t.Errorf("item %d is %s, want %s", i, items[i].GetName(), want)
		}
	}
}
