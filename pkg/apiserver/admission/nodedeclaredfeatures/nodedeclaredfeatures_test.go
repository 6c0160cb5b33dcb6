package nodedeclaredfeatures

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry/registrytest"
)

func requests(cpu string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
}

// The messages are those of kube-apiserver v1.36.3.
func TestValidate(t *testing.T) {
	t.Parallel()
	nodes := registrytest.Of(t, "nodes",
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "old"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Status: corev1.NodeStatus{
			DeclaredFeatures: []string{"InPlacePodLevelResourcesVerticalScaling",
				"InPlacePodVerticalScalingInitContainers"}}})
	pod := func(node string, change func(*corev1.PodSpec)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: node,
			InitContainers: []corev1.Container{{Name: "i", Resources: requests("1")}},
			Containers:     []corev1.Container{{Name: "c", Resources: requests("1")}}}}
		if change != nil {
			change(&p.Spec)
		}
		return p
	}
	whole := func(s *corev1.PodSpec) { r := requests("2"); s.Resources = &r }
	initial := func(s *corev1.PodSpec) { s.InitContainers[0].Resources = requests("2") }
	regular := func(s *corev1.PodSpec) { s.Containers[0].Resources = requests("2") }
	both := func(s *corev1.PodSpec) { whole(s); initial(s) }
	for name, c := range map[string]struct {
		node   string
		change func(*corev1.PodSpec)
		want   string
	}{
		"a regular container": {"old", regular, ""},
		"an init container": {"old", initial,
			`pods "p" is forbidden: pod update requires features InPlacePodVerticalScalingInitContainers which are not available on node "old"`},
		"both": {"old", both,
			`pods "p" is forbidden: pod update requires features InPlacePodLevelResourcesVerticalScaling, InPlacePodVerticalScalingInitContainers which are not available on node "old"`},
		"a node that knows it":                   {"new", both, ""},
		"no node":                                {"", both, ""},
		"node gone":                              {"gone", whole, `pods "p" is forbidden: node "gone" not found`},
		"an init container that cannot be there": {"old", func(s *corev1.PodSpec) { s.InitContainers = nil }, ""},
	} {
		a := &admission.Attributes{Operation: admission.Update,
			Resource: corev1.SchemeGroupVersion.WithResource("pods"), Subresource: "resize", Name: "p",
			Object: pod(c.node, c.change), OldObject: pod(c.node, nil)}
		got := ""
		if err := New(nodes).Validator.Validate(t.Context(), a); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
