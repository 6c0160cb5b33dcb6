package main

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller/controllertest"
)

// daemonSet: a pod on each node it selects; a node that comes later gets one; an update and a rollback move all pods,
// and the history keeps both templates.
func (w *world) daemonSet(t *testing.T) {
	ns := w.makeNamespace(t, "t-daemonset")
	for _, name := range []string{"d1", "d2"} {
		w.makeNode(t, name)
	}
	labels := map[string]string{"app": "d"}
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "d"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				// No kubelet renews the nodes' leases: on a slow machine they are marked unreachable before the test is
				// over.
				Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				NodeSelector: map[string]string{"for": "daemons"},
				Containers:   []corev1.Container{{Name: "c", Image: "one"}},
			}},
		},
	}
	if _, err := apps.DaemonSets(w.Client).Create(t.Context(), ds); err != nil {
		t.Fatal(err)
	}
	w.daemons(t, ns, "d", "one", 2)
	w.makeNode(t, "d3")
	w.daemons(t, ns, "d", "one", 3)
	for _, image := range []string{"two", "one"} {
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":%q}]}}}}`, image)
		if _, err := apps.DaemonSets(w.Client).Patch(t.Context(), ns, "d", types.StrategicMergePatchType,
			[]byte(patch)); err != nil {
			t.Fatal(err)
		}
		w.daemons(t, ns, "d", image, 3)
	}
	revisions, err := apps.ControllerRevisions(w.Client).List(t.Context(), ns, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[int64]bool{}
	for _, r := range revisions {
		numbers[r.Revision] = true
	}
	if len(revisions) != 2 || !numbers[2] || !numbers[3] {
		t.Errorf("revisions %v, want 2 and 3: the rollback moved the first to the end", numbers)
	}
}

// makeNode registers a node that daemons select.
func (w *world) makeNode(t *testing.T, name string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"for": "daemons"}}}
	if _, err := core.Nodes(w.Client).Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

// daemons waits until the DaemonSet's status tells of n available pods with the image, and they are there.
func (w *world) daemons(t *testing.T, ns, name, image string, n int32) {
	t.Helper()
	controllertest.Eventually(t, fmt.Sprintf("%d daemons with image %s", n, image), func() string {
		w.makeReady(t, ns)
		ds, err := apps.DaemonSets(w.Client).Get(t.Context(), ns, name)
		if err != nil {
			return err.Error()
		}
		s := ds.Status
		if s.ObservedGeneration != ds.Generation || s.DesiredNumberScheduled != n || s.UpdatedNumberScheduled != n ||
			s.NumberAvailable != n {
			return fmt.Sprintf("%+v", s)
		}
		pods, err := core.Pods(w.Client).List(t.Context(), ns, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, p := range pods {
			if p.Spec.Containers[0].Image != image {
				return p.Name + " runs " + p.Spec.Containers[0].Image
			}
		}
		if len(pods) != int(n) {
			return fmt.Sprint(len(pods), " pods")
		}
		return ""
	})
}
