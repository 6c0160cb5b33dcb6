package controller

import (
	"context"
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

// TestIndexAddedLate: an index has the objects that came before it, follows those that change, and exists once.
func TestIndexAddedLate(t *testing.T) {
	t.Parallel()
	pods := InformerFor(NewInformers(nil), core.Pods)
	pod := func(node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"},
			Spec: corev1.PodSpec{NodeName: node}}
	}
	if err := pods.store.Add(pod("n1")); err != nil {
		t.Fatal(err)
	}
	byNode := NewIndex(pods, "node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
	again := NewIndex(pods, "node", func(*corev1.Pod) []string { return nil })
	for _, node := range []string{"n1", "n2"} {
		for _, x := range []Index[*corev1.Pod]{byNode, again} {
			if got := x.At(node); len(got) != 1 || !slices.Equal(x.Values(), []string{node}) {
				t.Errorf("on %s: %d pods, on nodes %q", node, len(got), x.Values())
			}
		}
		if err := pods.store.Update(pod("n2")); err != nil {
			t.Fatal(err)
		}
	}
	if got := byNode.At("n1"); len(got) != 0 {
		t.Errorf("the pod left n1, and the index has %d there", len(got))
	}
}

func fakeInformer[T apiclient.Object](empty T, source *cachetest.FakeControllerSource) *Informer[T] {
	raw := cache.NewSharedIndexInformerWithOptions(
		apiclient.PlainListWatch{ListWatch: &cache.ListWatch{ListFunc: source.List, WatchFunc: source.Watch}}, empty,
		cache.SharedIndexInformerOptions{})
	return &Informer[T]{raw: raw, store: raw.GetIndexer()}
}
