package ttl

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// TestNext: the seconds while a cluster grows to 10,001 nodes and shrinks again; each change with the number of nodes
// at which it is.
func TestNext(t *testing.T) {
	t.Parallel()
	var got []string
	step := 0
	see := func(nodes int) {
		if s := next(step, nodes); s != step {
			step = s
			got = append(got, fmt.Sprintf("%d:%d", nodes, boundaries()[step].seconds))
		}
	}
	for n := range 10002 {
		see(n)
	}
	for n := 10001; n >= 0; n-- {
		see(n)
	}
	if want := []string{"101:15", "501:30", "1001:60", "2001:300", "10001:600", "8999:300", "1799:60", "899:30",
		"449:15", "89:0"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if s := next(0, 1500); boundaries()[s].seconds != 60 {
		t.Errorf("at a start with 1,500 nodes: %d s", boundaries()[s].seconds)
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	for has, want := range map[string]string{
		"":   `{"metadata":{"annotations":{"node.alpha.kubernetes.io/ttl":"0"}}}`,
		"15": `{"metadata":{"annotations":{"node.alpha.kubernetes.io/ttl":"0"}}}`,
		"0":  "",
	} {
		fake := &controllertest.Fake{Answer: func(controllertest.Call) (runtime.Object, error) {
			return &corev1.Node{}, nil
		}}
		c, err := New(fake.Deps(t, time.Unix(1000, 0)))
		if err != nil {
			t.Fatal(err)
		}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		if has != "" {
			n.Annotations = map[string]string{corev1.ObjectTTLAnnotationKey: has}
		}
		controllertest.Put(t, c.nodes, n)
		_, err = c.Reconcile(t.Context(), controller.Key{Name: "n"})
		got := ""
		for _, call := range fake.Calls() {
			got += string(call.Body)
		}
		if err != nil || got != want {
			t.Errorf("%q: %s, %v", has, got, err)
		}
	}
}
