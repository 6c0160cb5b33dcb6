package quota

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

func volumeClaim(class *string, size string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: class}}
	if size != "" {
		c.Spec.Resources.Requests = list("storage", size)
	}
	return c
}

// https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-for-storage
func TestClaims(t *testing.T) {
	t.Parallel()
	annotated := volumeClaim(ptr.To("gold"), "1Gi")
	annotated.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{corev1.BetaStorageClassAnnotation: "old"}}
	shrinks, grows := volumeClaim(nil, "1Gi"), volumeClaim(nil, "3Gi")
	shrinks.Status.AllocatedResources = list("storage", "2Gi")
	grows.Status.AllocatedResources = list("storage", "2Gi")
	base := func(size string) corev1.ResourceList {
		return list("count/persistentvolumeclaims", "1", "persistentvolumeclaims", "1", "requests.storage", size)
	}
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  corev1.ResourceList
	}{
		"no class":      {volumeClaim(nil, "1Gi"), base("1Gi")},
		"empty class":   {volumeClaim(ptr.To(""), "1Gi"), base("1Gi")},
		"part of bytes": {volumeClaim(nil, "100m"), base("1")},
		"no size": {volumeClaim(nil, ""),
			list("count/persistentvolumeclaims", "1", "persistentvolumeclaims", "1")},
		"class": {volumeClaim(ptr.To("gold"), "1Gi"), Add(base("1Gi"),
			list("gold.storageclass.storage.k8s.io/persistentvolumeclaims", "1",
				"gold.storageclass.storage.k8s.io/requests.storage", "1Gi"))},
		"old annotation": {annotated, Add(base("1Gi"),
			list("old.storageclass.storage.k8s.io/persistentvolumeclaims", "1",
				"old.storageclass.storage.k8s.io/requests.storage", "1Gi"))},
		"shrinks": {shrinks, base("2Gi")},
		"grows":   {grows, base("3Gi")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Usage(corev1.Resource("persistentvolumeclaims"), c.claim, time.Time{},
				Known{}); !Equal(got, c.want) {
				t.Errorf("got %s, want %s", Text(got), Text(c.want))
			}
		})
	}
}

func TestCountsClaims(t *testing.T) {
	t.Parallel()
	claims := corev1.Resource("persistentvolumeclaims")
	for name, want := range map[corev1.ResourceName]bool{
		"persistentvolumeclaims": true, "requests.storage": true, "count/persistentvolumeclaims": true,
		"gold.storageclass.storage.k8s.io/requests.storage":       true,
		"gold.storageclass.storage.k8s.io/persistentvolumeclaims": true,
		"gold.storageclass.storage.k8s.io/pods":                   false,
		".storageclass.storage.k8s.io/requests.storage":           false,
		"limits.storage": false, "pods": false,
	} {
		if got := counts(claims, name); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
		if by := Counted(name); want && !slices.Equal(by, []schema.GroupResource{claims}) {
			t.Errorf("%s counts %v", name, by)
		}
	}
}
