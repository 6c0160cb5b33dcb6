package endpointslice

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// BenchmarkReconcile is what an event of a pod costs beside many Services of its namespace, each with a pod and a
// slice: the Service that it wakes is looked at, and has nothing to be written.
func BenchmarkReconcile(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var c *Controller
			made := 0
			fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
				if s, ok := call.Object.(*discoveryv1.EndpointSlice); ok {
					made++
					s.Name, s.ResourceVersion = fmt.Sprint("s", made), fmt.Sprint(made)
					controllertest.Put(b, c.slices, s)
				}
				return call.Object, nil
			}}
			var err error
			if c, err = New(fake.Deps(b, time.Unix(1_000_000, 0)), 100); err != nil {
				b.Fatal(err)
			}
			controllertest.Put(b, c.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
			for i := range n {
				svc, p := service(), readyPod(i)
				svc.Name = fmt.Sprint("web", i)
				svc.Spec.Selector = map[string]string{"app": svc.Name}
				p.Labels = map[string]string{"app": svc.Name, "tier": "x", "pod-template-hash": fmt.Sprint("h", i)}
				controllertest.Put(b, c.services, svc)
				controllertest.Put(b, c.pods, p)
			}
			for i := range n {
				if _, err := c.Reconcile(b.Context(),
					controller.Key{Namespace: "ns", Name: fmt.Sprint("web", i)}); err != nil {
					b.Fatal(err)
				}
			}
			i := 0
			for b.Loop() {
				if _, err := c.Reconcile(b.Context(),
					controller.Key{Namespace: "ns", Name: fmt.Sprint("web", i%n)}); err != nil {
					b.Fatal(err)
				}
				i++
			}
			if made != n {
				b.Errorf("%d slices", made)
			}
		})
	}
}
