package registry_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNameOfOneThatGoes: a client that recreates an object learns that its predecessor is still there, waiting for a
// finalizer.
func TestNameOfOneThatGoes(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	m := configMap("a")
	m.Finalizers = []string{"x/y"}
	create(t, g, m)
	again := func(dryRun ...string) error {
		_, err := g.Create(t.Context(), "ns", configMap("a"), &metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	if err := again(); !apierrors.IsAlreadyExists(err) || err.Error() != `configmaps "a" already exists` {
		t.Errorf("before: %v", err)
	}
	if _, _, err := g.Delete(t.Context(), "ns", "a", &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, dry := range [][]string{nil, {metav1.DryRunAll}} {
		if err := again(dry...); !apierrors.IsAlreadyExists(err) ||
			err.Error() != `object is being deleted: configmaps "a" already exists` {
			t.Errorf("dry run %v: %v", dry, err)
		}
	}
}
