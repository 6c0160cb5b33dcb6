package workloads

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func service(namespace, name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{Selector: selector}}
}

// TestSelectorFor: what default topology spreading counts (concepts/scheduling-eviction/topology-spread-constraints,
// "Cluster-level default constraints": computed from the services, replica sets, stateful sets or replication
// controllers that the pod belongs to).
func TestSelectorFor(t *testing.T) {
	t.Parallel()
	w := New(func(namespace string, ref *metav1.OwnerReference) labels.Selector {
		if namespace != "a" || ref.Kind != "StatefulSet" {
			return nil
		}
		return labels.SelectorFromSet(labels.Set{"set": ref.Name})
	})
	web := map[string]string{"app": "web"}
	front := service("a", "front", web)
	w.ServiceChanged(nil, front)
	w.ServiceChanged(nil, service("a", "tier", map[string]string{"tier": "1", "app": "web"}))
	w.ServiceChanged(nil, service("a", "headless", nil))
	w.ServiceChanged(nil, service("b", "elsewhere", map[string]string{"app": "db"}))
	pod := func(namespace, owner string, labels map[string]string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: labels}}
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: "s", Controller: new(true)}}
		}
		return p
	}
	check := func(what string, p *corev1.Pod, want string) {
		t.Helper()
		if got := fmt.Sprint(w.SelectorFor(p)); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	check("one service", pod("a", "", web), "app=web")
	check("two services", pod("a", "", map[string]string{"app": "web", "tier": "1"}), "app=web,tier=1")
	check("services of another namespace", pod("b", "", web), "<nil>")
	check("a StatefulSet", pod("a", "StatefulSet", nil), "set=s")
	check("a StatefulSet with a service", pod("a", "StatefulSet", web), "app=web,set=s")
	check("a controller that is not known", pod("a", "DaemonSet", nil), "<nil>")
	changed := service("a", "front", map[string]string{"app": "api"})
	w.ServiceChanged(front, changed)
	check("the service selects others now", pod("a", "", web), "<nil>")
	check("the others", pod("a", "", map[string]string{"app": "api"}), "app=api")
	w.ServiceChanged(changed, nil)
	check("the service is gone", pod("a", "", map[string]string{"app": "api"}), "<nil>")
}
