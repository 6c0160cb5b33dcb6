package podgc

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// BenchmarkSweep is one sweep beside pods that need none, ten on each node.
func BenchmarkSweep(b *testing.B) {
	for _, n := range []int{5_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ctl, err := New((&controllertest.Fake{}).Deps(b, start), 12500)
			if err != nil {
				b.Fatal(err)
			}
			for i := range n {
				p := pod(fmt.Sprint("p", i), fmt.Sprint("n", i/10), corev1.PodRunning)
				controllertest.Put(b, ctl.pods, p)
				if i%10 == 0 {
					controllertest.Put(b, ctl.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.Spec.NodeName}})
				}
			}
			for b.Loop() {
				if _, err := ctl.Reconcile(b.Context(), controller.Key{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
