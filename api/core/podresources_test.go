package core

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

func amounts(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// TestPodResourcesFollowAdmission: the resources of a pod as a whole follow from what its containers have after
// admission changed them, and not from what the client sent. The values are those of a kube-apiserver v1.37.2 with a
// limit range.
func TestPodResourcesFollowAdmission(t *testing.T) {
	t.Parallel()
	p := &corev1.Pod{Spec: corev1.PodSpec{
		Resources: &corev1.ResourceRequirements{Limits: amounts("cpu", "1")},
		Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: amounts("cpu", "300m"), Limits: amounts("cpu", "600m")}},
			{},
		}}}
	DefaultPod(p)
	if len(p.Spec.Resources.Requests) > 0 {
		t.Errorf("admission sees requests %v", p.Spec.Resources.Requests)
	}
	first, second := &p.Spec.Containers[0].Resources, &p.Spec.Containers[1].Resources
	first.Requests["memory"], first.Limits["memory"] = resource.MustParse("100Mi"), resource.MustParse("200Mi")
	second.Requests = amounts("cpu", "100m", "memory", "100Mi")
	second.Limits = amounts("cpu", "500m", "memory", "200Mi")
	podStrategy().PrepareCreate(p)
	want := &corev1.ResourceRequirements{Requests: amounts("cpu", "400m", "memory", "200Mi"),
		Limits: amounts("cpu", "1", "memory", "400Mi")}
	if !apiequality.Semantic.DeepEqual(p.Spec.Resources, want) {
		t.Errorf("%+v, want %+v", p.Spec.Resources, want)
	}
	if p.Status.QOSClass != corev1.PodQOSBurstable {
		t.Errorf("quality of service %s", p.Status.QOSClass)
	}
}

// TestPodResourcesOfWrites: an update without the requests is one that removes them, and is refused; a resize gets them
// again, as from a kube-apiserver v1.37.2.
func TestPodResourcesOfWrites(t *testing.T) {
	t.Parallel()
	old := &corev1.Pod{Spec: corev1.PodSpec{
		Resources: &corev1.ResourceRequirements{Limits: amounts("cpu", "1"), Requests: amounts("cpu", "300m")},
		Containers: []corev1.Container{{Name: "c",
			Resources: corev1.ResourceRequirements{Requests: amounts("cpu", "300m"), Limits: amounts("cpu", "300m")}}}}}
	sent := func() *corev1.Pod {
		p := old.DeepCopy()
		p.Spec.Resources = &corev1.ResourceRequirements{Limits: amounts("cpu", "1")}
		DefaultPod(p)
		return p
	}
	updated, resized := sent(), sent()
	podStrategy().PrepareUpdate(updated, old)
	if podSpecChanged(updated, old) != true {
		t.Error("an update without requests changes nothing")
	}
	podResizeStrategy().PrepareUpdate(resized, old)
	if !apiequality.Semantic.DeepEqual(resized.Spec.Resources, old.Spec.Resources) {
		t.Errorf("resized: %+v", resized.Spec.Resources)
	}
}
