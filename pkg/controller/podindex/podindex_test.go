package podindex

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

func newPods() *controller.Informer[*corev1.Pod] {
	return controller.InformerFor(controller.NewInformers(nil), core.Pods)
}

func named(name string, spec corev1.PodSpec) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: spec}
}

// TestByNode: the index follows a pod that is bound later. Unbound pods are no node's.
func TestByNode(t *testing.T) {
	t.Parallel()
	pods := newPods()
	byNode := NewByNode(pods)
	for _, node := range []string{"", "n1"} {
		controllertest.Put(t, pods, named("p", corev1.PodSpec{NodeName: node}))
		for _, at := range []string{"", "n1", "n2"} {
			if n := len(byNode.On(at)); n > 0 != (at == node) {
				t.Errorf("bound to %q: %d pods on %q", node, n, at)
			}
		}
		if nodes := byNode.Nodes(); slices.Contains(nodes, "") || slices.Contains(nodes, "n1") != (node == "n1") {
			t.Errorf("bound to %q: nodes %q", node, nodes)
		}
	}
}

// TestByLabel: a label counts in its own namespace, by its value.
func TestByLabel(t *testing.T) {
	t.Parallel()
	pods := newPods()
	byLabel := NewByLabel(pods)
	p := named("p", corev1.PodSpec{})
	p.Labels = map[string]string{"app": "web", "empty": ""}
	controllertest.Put(t, pods, p)
	for _, c := range []struct {
		namespace, label, value string
		want                    int
	}{{"ns", "app", "web", 1}, {"ns", "empty", "", 1}, {"ns", "app", "", 0}, {"other", "app", "web", 0}} {
		if n := len(byLabel.With(c.namespace, c.label, c.value)); n != c.want {
			t.Errorf("%v: %d pods", c, n)
		}
	}
}

// TestByClaim: a pod uses the claims that it names, and those that are made for its ephemeral volumes.
func TestByClaim(t *testing.T) {
	t.Parallel()
	pods := newPods()
	byClaim := NewByClaim(pods)
	controllertest.Put(t, pods, named("p", corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "a", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		{Name: "b", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "c", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}}))
	for claim, want := range map[string]int{"data": 1, "p-b": 1, "a": 0, "p-c": 0} {
		if n := len(byClaim.Using(controller.Key{Namespace: "ns", Name: claim})); n != want {
			t.Errorf("%s: used by %d pods, want %d", claim, n, want)
		}
	}
}

// BenchmarkByNode is what an event of a node costs beside 10 pods on each.
func BenchmarkByNode(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			pods := newPods()
			byNode := NewByNode(pods)
			for i := range 10 * n {
				controllertest.Put(b, pods, named(fmt.Sprint(i), corev1.PodSpec{NodeName: fmt.Sprint(i % n)}))
			}
			for b.Loop() {
				if len(byNode.On("7")) != 10 {
					b.Fatal("pods are missing")
				}
			}
		})
	}
}
