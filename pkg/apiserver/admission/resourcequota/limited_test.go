package resourcequota

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// What is limited takes a quota that bounds it. The messages are those of a real kube-apiserver v1.36.3.
func TestLimited(t *testing.T) {
	t.Parallel()
	gold := corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopePriorityClass,
		Operator: corev1.ScopeSelectorOpIn, Values: []string{"gold"}}
	limited := []Limited{{Resource: "configmaps", MatchContains: []string{"count/configmaps"}},
		{Resource: "pods", MatchScopes: []corev1.ScopedResourceSelectorRequirement{gold}},
		{Resource: "persistentvolumeclaims", MatchContains: []string{"gold.storageclass"}}}
	classed := pod(nil, nil)
	classed.Spec.PriorityClassName = "gold"
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("gold"),
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	counted := bounded("q", list("count/configmaps", "1"), list("count/configmaps", "0"))
	ofGold := bounded("g", list("pods", "1"), list("pods", "0"))
	ofGold.Spec.ScopeSelector = &corev1.ScopeSelector{
		MatchExpressions: []corev1.ScopedResourceSelectorRequirement{gold}}
	if err := New(store(t, counted, ofGold), nil, nil, limited, time.Now).Validator.Validate(t.Context(),
		creation("configmaps", configMap)); err != nil {
		t.Error(err)
	}
	if err := New(store(t, counted, ofGold), nil, nil, limited, time.Now).Validator.Validate(t.Context(),
		creation("pods", classed)); err != nil {
		t.Error(err)
	}
	none := New(store(t), nil, nil, limited, time.Now).Validator
	if err := none.Validate(t.Context(), creation("pods", pod(nil, nil))); err != nil {
		t.Errorf("a pod of no class: %v", err)
	}
	for want, err := range map[string]error{
		`configmaps "x" is forbidden: insufficient quota to consume: count/configmaps`: none.Validate(t.Context(),
			creation("configmaps", configMap)),
		`insufficient quota to match these scopes: [{PriorityClass In [gold]}]`: none.Validate(t.Context(),
			creation("pods", classed)),
		`persistentvolumeclaims "x" is forbidden: insufficient quota to consume: gold.storageclass.storage.k8s.io/persistentvolumeclaims,gold.storageclass.storage.k8s.io/requests.storage`: none.Validate(t.Context(),
			creation("persistentvolumeclaims", claim)),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
