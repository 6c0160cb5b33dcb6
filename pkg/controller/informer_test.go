package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	cachetest "k8s.io/client-go/tools/cache/testing"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
)

// TestWatchTellsReplacedObjectsApart: when a watch breaks, the list after it may show another object under the same
// name as a change of the first. Owners must learn that the first is gone.
func TestWatchTellsReplacedObjectsApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewFakeControllerSource()
		pods := fakeInformer(&corev1.Pod{}, source)
		l := NewLoop[Key](LoopConfig{Name: "test"}, nil)
		defer l.queue.ShutDown()
		var got []string
		note := func(what string) func(*corev1.Pod) {
			return func(p *corev1.Pod) { got = append(got, what+" "+string(p.UID)) }
		}
		err := Watch(l, pods, Handlers[*corev1.Pod]{Add: note("added"), Delete: note("deleted"),
			Update: func(_, p *corev1.Pod) {
				note("updated")(p)
			}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); pods.raw.RunWithContext(ctx) }()
		for _, uid := range []types.UID{"one", "one", "two"} {
			source.Modify(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: uid}})
			synctest.Wait()
		}
		cancel()
		<-done
		source.Shutdown()
		if want := []string{"added one", "updated one", "deleted one", "added two"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// TestPodsOn: the index follows a pod that is bound later.
func TestPodsOn(t *testing.T) {
	t.Parallel()
	pods := InformerFor(NewInformers(nil), core.Pods)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	for _, node := range []string{"", "n1"} {
		p = p.DeepCopy()
		p.Spec.NodeName = node
		if err := pods.store.Add(p); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"", "n1", "n2"} {
			if n := len(PodsOn(pods, at)); n > 0 != (at == node) {
				t.Errorf("bound to %q: %d pods on %q", node, n, at)
			}
		}
	}
}

// BenchmarkPodsOn is what an event of a node costs beside 10 pods on each.
func BenchmarkPodsOn(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			pods := InformerFor(NewInformers(nil), core.Pods)
			for i := range 10 * n {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint(i)},
					Spec: corev1.PodSpec{NodeName: fmt.Sprint(i % n)}}
				if err := pods.store.Add(p); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if len(PodsOn(pods, "7")) != 10 {
					b.Fatal("pods are missing")
				}
			}
		})
	}
}

func fakeInformer[T apiclient.Object](empty T, source *cachetest.FakeControllerSource) *Informer[T] {
	raw := cache.NewSharedIndexInformerWithOptions(
		apiclient.PlainListWatch{ListWatch: &cache.ListWatch{ListFunc: source.List, WatchFunc: source.Watch}}, empty,
		cache.SharedIndexInformerOptions{Indexers: indexers(empty)})
	return &Informer[T]{raw: raw, store: raw.GetIndexer()}
}
