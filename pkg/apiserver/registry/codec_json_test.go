package registry_test

import (
	"encoding/json"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
)

// TestFactsOfAnotherVersion: what an object is selected by is read without upgrading it, which may take a webhook that
// is slow or gone. All caches of the server wait for the facts of a change.
func TestFactsOfAnotherVersion(t *testing.T) {
	t.Parallel()
	upgrades := 0
	c := registry.NewCodec(&resources.Row{
		GVK: schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Widget"}, Resource: "widgets",
		New: func() runtime.Object { return &unstructured.Unstructured{Object: map[string]any{}} },
		Upgrade: func(runtime.Object) (runtime.Object, error) {
			upgrades++
			return nil, errors.New("nobody answers")
		},
		Fields: func(obj runtime.Object) fields.Set {
			text, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "spec", "text")
			return fields.Set{"spec.text": text}
		},
		Decoded: func(runtime.Object) {},
	})
	for version, want := range map[string]int{"v1": 1, "v2": 0} {
		upgrades = 0
		value := []byte(`{"apiVersion":"example.com/` + version +
			`","kind":"Widget","metadata":{"labels":{"a":"b"},"name":"w"},"spec":{"text":"t"}}` + "\n")
		facts, err := c.FactsOf(value)
		if err != nil || upgrades > 0 || facts.Labels().Get("a") != "b" || facts.Fields().Get("metadata.name") != "w" ||
			facts.Fields().Get("spec.text") != "t" {
			t.Errorf("%s: %d upgrades, facts %+v, %v", version, upgrades, facts, err)
		}
		if _, err := c.Decode(value, 1); upgrades != want || (err != nil) != (want > 0) {
			t.Errorf("%s is decoded with %d upgrades, %v", version, upgrades, err)
		}
	}
}

// TestItemOfAnotherVersion: the version of a custom resource that is stored may change between the write of an object
// and a read of what the write left in a cache. Its facts are those of the earlier codec.
func TestItemOfAnotherVersion(t *testing.T) {
	t.Parallel()
	codecOf := func(version string) registry.Codec {
		return registry.NewCodec(&resources.Row{
			GVK: schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Widget"}, Resource: "widgets",
			New: func() runtime.Object { return &unstructured.Unstructured{Object: map[string]any{}} },
		})
	}
	earlier, now := codecOf("v1"), codecOf("v2")
	obj := earlier.New()
	obj.(*unstructured.Unstructured).SetName("w")
	d, err := earlier.Draft(obj)
	if err != nil {
		t.Fatal(err)
	}
	item := storage.NewItem("k", d.Value, 7, *d.Facts)
	for _, c := range []registry.Codec{earlier, now, earlier} {
		got, err := c.AppendJSON(nil, item)
		if err != nil {
			t.Fatal(err)
		}
		var read unstructured.Unstructured
		if err := json.Unmarshal(got, &read); err != nil || read.GroupVersionKind() != c.GVK() ||
			read.GetResourceVersion() != "7" {
			t.Errorf("as %s: %s, %v", c.GVK(), got, err)
		}
		if size, err := c.ElementSize(item); err != nil || size != len(got) {
			t.Errorf("as %s: size %d of %d bytes, %v", c.GVK(), size, len(got), err)
		}
	}
}
