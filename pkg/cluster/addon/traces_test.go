package addon

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"

	"bonsai/deploy/addons"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/tracestore"
)

// TestTracesFollowNodes: the endpoints of the API of traces are the nodes that there are, also after a change by a
// command that has no manifests; and where the API is off, nothing leads to it.
func TestTracesFollowNodes(t *testing.T) {
	t.Parallel()
	c := plan.Default("/data", "/bin")
	c.Addons = addons.Files
	objects, err := Read(c, tracestore.Addon)
	if err != nil {
		t.Fatal(err)
	}
	lists := map[schema.GroupVersionResource]string{}
	for kind, resource := range addonResources {
		lists[resource] = kind.Kind + "List"
	}
	var made []runtime.Object
	for _, obj := range objects {
		made = append(made, obj)
	}
	api := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, made...)
	endpoints := func() string {
		slice, err := resource(t, api, "EndpointSlice").Get(t.Context(), "traces", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all, _, err := unstructured.NestedSlice(slice.Object, "endpoints")
		return fmt.Sprint(all, err)
	}
	if got := endpoints(); got != "[map[addresses:[10.77.0.11] conditions:map[ready:true] nodeName:n1]] <nil>" {
		t.Error(got)
	}
	c.Nodes, c.Addons = []plan.Node{{Number: 2}}, nil
	if err := patchEndpoints(t.Context(), c, api); err != nil {
		t.Fatal(err)
	}
	if got := endpoints(); got != "[map[addresses:[10.77.0.12] conditions:map[ready:true] nodeName:n2]] <nil>" {
		t.Error(got)
	}
	c.NoTraces, c.Addons = true, addons.Files
	for range 2 {
		if err := removeTraces(t.Context(), c, api); err != nil {
			t.Fatal(err)
		}
	}
	if err := patchEndpoints(t.Context(), c, api); err != nil {
		t.Errorf("without a slice: %v", err)
	}
	for _, obj := range objects {
		r, err := resourceOf(api, obj)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Get(t.Context(), obj.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s %s is left: %v", obj.GetKind(), obj.GetName(), err)
		}
	}
}

func resource(t *testing.T, api dynamic.Interface, kind string) dynamic.ResourceInterface {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "discovery.k8s.io/v1", "kind": kind,
		"metadata": map[string]any{"namespace": "kube-system"}}}
	r, err := resourceOf(api, obj)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
