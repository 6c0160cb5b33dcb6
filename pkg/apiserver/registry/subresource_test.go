package registry_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/registry"
)

func write(t *testing.T, g *registry.Generic, ns, name, subresource string,
	change func(runtime.Object)) (runtime.Object, error) {
	t.Helper()
	return g.Update(t.Context(), ns, name, subresource, func(current runtime.Object) (runtime.Object, error) {
		change(current)
		return current, nil
	}, &metav1.UpdateOptions{})
}

// pods/ephemeralcontainers adds ephemeral containers and changes nothing else.
func TestEphemeralContainers(t *testing.T) {
	t.Parallel()
	g := store(t, "pods")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i"}}}}
	if _, err := g.Create(t.Context(), "ns", pod, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	add := func(name string) func(runtime.Object) {
		return func(obj runtime.Object) {
			p := obj.(*corev1.Pod)
			p.Labels = map[string]string{"x": "y"}
			p.Spec.Containers[0].Image = "other"
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers,
				corev1.EphemeralContainer{
					EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "debug",
						ImagePullPolicy:          corev1.PullAlways,
						TerminationMessagePolicy: corev1.TerminationMessageReadFile}})
		}
	}
	obj, err := write(t, g, "ns", "p", "ephemeralcontainers", add("d"))
	if err != nil {
		t.Fatal(err)
	}
	if p := obj.(*corev1.Pod); len(p.Spec.EphemeralContainers) != 1 || p.Spec.Containers[0].Image != "i" ||
		len(p.Labels) != 0 {
		t.Errorf("%+v", p)
	}
	if _, err := write(t, g, "ns", "p", "ephemeralcontainers", add("d")); !apierrors.IsInvalid(err) {
		t.Errorf("the same name again: %v", err)
	}
	if _, err := write(t, g, "ns", "p", "ephemeralcontainers", func(obj runtime.Object) {
		obj.(*corev1.Pod).Spec.EphemeralContainers = nil
	}); !apierrors.IsInvalid(err) {
		t.Errorf("taken away: %v", err)
	}
	if obj, err = write(t, g, "ns", "p", "", func(obj runtime.Object) {
		obj.(*corev1.Pod).Spec.EphemeralContainers = nil
	}); err == nil {
		t.Errorf("taken away through the pod: %v", obj)
	}
}

// pods/resize changes resources, which is a new generation of the pod, and nothing else; the pod itself does not change
// them.
func TestResize(t *testing.T) {
	t.Parallel()
	g := store(t, "pods")
	cpu := func(q string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q)}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i", Resources: cpu("1")}}}}
	if _, err := g.Create(t.Context(), "ns", pod, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	resize := func(obj runtime.Object) {
		p := obj.(*corev1.Pod)
		p.Labels, p.Status.Phase = map[string]string{"x": "y"}, corev1.PodRunning
		p.Spec.Containers[0].Image, p.Spec.Containers[0].Resources = "other", cpu("2")
	}
	if _, err := write(t, g, "ns", "p", "", resize); !apierrors.IsInvalid(err) {
		t.Errorf("through the pod: %v", err)
	}
	obj, err := write(t, g, "ns", "p", "resize", resize)
	if err != nil {
		t.Fatal(err)
	}
	if p := obj.(*corev1.Pod); p.Spec.Containers[0].Resources.Requests.Cpu().String() != "2" || p.Generation != 2 ||
		p.Spec.Containers[0].Image != "i" || len(p.Labels) != 0 || p.Status.Phase != corev1.PodPending {
		t.Errorf("%+v", p)
	}
}

// A namespace is kept by its finalizers; only namespaces/finalize takes them away, which removes it when it is being
// deleted.
func TestFinalize(t *testing.T) {
	t.Parallel()
	g := store(t, "namespaces")
	if _, err := g.Create(t.Context(), "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
		&metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	empty := func(obj runtime.Object) { obj.(*corev1.Namespace).Spec.Finalizers = nil }
	obj, err := write(t, g, "", "n", "", empty)
	if err != nil || len(obj.(*corev1.Namespace).Spec.Finalizers) != 1 {
		t.Fatalf("an update took the finalizer away: %v, %v", obj, err)
	}
	if _, _, err := g.Delete(t.Context(), "", "n", &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if obj, err = g.Get(t.Context(), "", "n"); err != nil ||
		obj.(*corev1.Namespace).Status.Phase != corev1.NamespaceTerminating {
		t.Fatalf("deleted with a finalizer: %v, %v", obj, err)
	}
	if _, err := write(t, g, "", "n", "finalize", empty); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Get(t.Context(), "", "n"); !apierrors.IsNotFound(err) {
		t.Errorf("finalized: %v", err)
	}
}
