package resources_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/resources"
)

// TestDynamicIsKnown: every request asks whether its version's objects have a Go type, and makes no object for that.
func TestDynamicIsKnown(t *testing.T) {
	t.Parallel()
	for dynamic, newObject := range map[bool]func() runtime.Object{
		false: func() runtime.Object { return &corev1.Pod{} },
		true:  func() runtime.Object { return &unstructured.Unstructured{} },
	} {
		made := 0
		row := resources.Row{New: func() runtime.Object { made++; return newObject() }}
		v := row.ServedVersions()[0]
		made = 0
		if v.Dynamic() != dynamic || made != 0 {
			t.Errorf("Dynamic is %t and made %d objects, want %t and none", v.Dynamic(), made, dynamic)
		}
	}
}
