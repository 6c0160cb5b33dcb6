package registry_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/registry/registrytest"
)

// TestDeleteReads: Delete reads the object and asks admission whatever its options say. Only DeleteItem, whose caller
// checks the permission for it, removes an object unread.
func TestDeleteReads(t *testing.T) {
	t.Parallel()
	maps := registrytest.Of(t, "configmaps",
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m"}})
	opts := &metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: new(true)}
	if _, _, _, err := maps.DeleteItem(t.Context(), "default", "m", opts); !apierrors.IsConflict(err) {
		t.Errorf("an object that can be read is discarded: %v", err)
	}
	if _, gone, err := maps.Delete(t.Context(), "default", "m", opts); err != nil || !gone {
		t.Errorf("gone %v, %v", gone, err)
	}
}
