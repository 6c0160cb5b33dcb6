package podresize

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry/registrytest"
)

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory)}
}

func pod(node, cpu, memory string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: node,
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list(cpu, memory)}}}}}
}

// The messages are those of kube-apiserver v1.36.3.
func TestValidate(t *testing.T) {
	t.Parallel()
	nodes := registrytest.Of(t, "nodes",
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"},
			Status: corev1.NodeStatus{Allocatable: list("1", "1Gi")}})
	for name, c := range map[string]struct {
		old, new *corev1.Pod
		sub      string
		want     string
	}{
		"fits exactly": {pod("n1", "100m", "1Mi"), pod("n1", "1", "1Gi"), "resize", ""},
		"too much CPU": {pod("n1", "100m", "1Mi"), pod("n1", "1001m", "1Mi"), "resize",
			`pods "p" is forbidden: node didn't have enough allocatable resources: cpu, requested: 1001, allocatable: 1000`},
		"still too much": {pod("n1", "3", "3Gi"), pod("n1", "2500m", "3Gi"), "resize",
			`pods "p" is forbidden: node didn't have enough allocatable resources: cpu, requested: 2500, allocatable: 1000; memory, requested: 3221225472, allocatable: 1073741824`},
		"nothing changes": {pod("n1", "3", "3Gi"), pod("n1", "3", "3Gi"), "resize", ""},
		"without a node":  {pod("", "1", "1Gi"), pod("", "9", "9Gi"), "resize", ""},
		"node gone": {pod("n2", "1", "1Gi"), pod("n2", "2", "1Gi"), "resize",
			`pods "p" is forbidden: node "n2" not found`},
		"another subresource": {pod("n1", "1", "1Gi"), pod("n1", "9", "9Gi"), "status", ""},
		"memory only too much": {pod("n1", "100m", "1Mi"), pod("n1", "100m", "2Gi"), "resize",
			`pods "p" is forbidden: node didn't have enough allocatable resources: memory, requested: 2147483648, allocatable: 1073741824`},
	} {
		a := &admission.Attributes{Operation: admission.Update,
			Resource: corev1.SchemeGroupVersion.WithResource("pods"), Subresource: c.sub, Name: "p", Object: c.new,
			OldObject: c.old}
		got := ""
		err := New(nodes).Validator.Validate(t.Context(), a)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		if capacity := strings.Contains(got, "enough"); capacity != apierrors.HasStatusCause(err, "NodeCapacity") {
			t.Errorf("%s: %#v", name, err)
		}
	}
}
