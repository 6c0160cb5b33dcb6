package addon

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestCreateMissing: what another start makes between the question and the answer is there, whatever the refusal
// says; all else is told.
func TestCreateMissing(t *testing.T) {
	t.Parallel()
	services := schema.GroupVersionResource{Version: "v1", Resource: "services"}
	obj := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"name": "kube-dns", "namespace": "kube-system"}}}
	for _, another := range []bool{true, false} {
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{services: "ServiceList"})
		client.PrependReactor("create", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
			if another {
				if err := client.Tracker().Create(services, obj.DeepCopy(), obj.GetNamespace(),
					metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
			return true, nil, errors.New("the address is taken")
		})
		if err := createMissing(t.Context(), client, obj); (err == nil) != another {
			t.Errorf("made by another %t: %v", another, err)
		}
	}
}
