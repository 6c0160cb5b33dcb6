package registry_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
)

func podOn(node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
}

func TestGracefulDeletion(t *testing.T) {
	t.Parallel()
	g := store(t, "pods")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if _, err := g.Create(t.Context(), "ns", pod, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	grace := func(seconds *int64) (*corev1.Pod, bool) {
		t.Helper()
		obj, gone, err := g.Delete(t.Context(), "ns", "p", &metav1.DeleteOptions{GracePeriodSeconds: seconds})
		if err != nil {
			t.Fatal(err)
		}
		return obj.(*corev1.Pod), gone
	}
	p, gone := grace(nil)
	if gone || *p.DeletionGracePeriodSeconds != 30 || p.DeletionTimestamp.Second() != 35 {
		t.Fatalf("first: %v %+v", gone, p.ObjectMeta)
	}
	if p, gone = grace(new(int64(60))); gone || *p.DeletionGracePeriodSeconds != 30 {
		t.Fatalf("a longer period: %v %+v", gone, p.ObjectMeta)
	}
	if p, gone = grace(new(int64(5))); gone || *p.DeletionGracePeriodSeconds != 5 ||
		p.DeletionTimestamp.Second() != 10 {
		t.Fatalf("a shorter period: %v %+v", gone, p.ObjectMeta)
	}
	if _, gone = grace(new(int64(0))); !gone {
		t.Fatal("period 0 does not remove the pod")
	}
}

// Watchers of pods see the mark before a pod is gone, also where no time is left from the start: as MODIFIED, then
// DELETED.
func TestDeletionInTwoSteps(t *testing.T) {
	t.Parallel()
	zero := &metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	for name, c := range map[string]struct {
		node string
		opts []*metav1.DeleteOptions
		want []string
	}{
		"of a pod without a node": {"", []*metav1.DeleteOptions{{}}, []string{"MODIFIED true 0", "DELETED true 0"}},
		"without grace":           {"n", []*metav1.DeleteOptions{zero}, []string{"MODIFIED true 0", "DELETED true 0"}},
		"shortened": {"n", []*metav1.DeleteOptions{{}, zero},
			[]string{"MODIFIED true 30", "MODIFIED true 0", "DELETED true 0"}},
		"of a dry run": {"", []*metav1.DeleteOptions{{DryRun: []string{metav1.DryRunAll}}, {}},
			[]string{"MODIFIED true 0", "DELETED true 0"}},
		"that the node may finish": {"n", []*metav1.DeleteOptions{{}}, []string{"MODIFIED true 30"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := store(t, "pods")
			created, _, err := g.CreateItem(t.Context(), "ns", "", podOn(c.node), &metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			watch, err := g.Storage.Watch(t.Context(), registry.Prefix(g.Row),
				storage.WatchOptions{Revision: created.Revision})
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Stop()
			for _, opts := range c.opts {
				obj, gone, err := g.Delete(t.Context(), "ns", "p", opts)
				if err != nil {
					t.Fatal(err)
				}
				if p := obj.(*corev1.Pod); p.DeletionTimestamp == nil || gone != (*p.DeletionGracePeriodSeconds == 0) {
					t.Errorf("the answer to %+v: %+v, gone: %v", opts, p.ObjectMeta, gone)
				}
			}
			var got []string
			for len(got) < len(c.want) {
				events, err := watch.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range events {
					obj, err := registry.Object(g.Codec(), e.Item)
					if err != nil {
						t.Fatal(err)
					}
					p := obj.(*corev1.Pod)
					seconds := int64(-1)
					if s := p.DeletionGracePeriodSeconds; s != nil {
						seconds = *s
					}
					got = append(got, fmt.Sprintf("%s %v %d", e.Type, p.DeletionTimestamp != nil, seconds))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("watched %q, want %q", got, c.want)
			}
		})
	}
}

// interposed is a storage in which something happens before the first removal.
type interposed struct {
	storage.Interface
	first func(ctx context.Context, key string)
}

func (s *interposed) Delete(ctx context.Context, key string, check func(*storage.Item) error) (*storage.Item, error) {
	if first := s.first; first != nil {
		s.first = nil
		first(ctx, key)
	}
	return s.Interface.Delete(ctx, key, check)
}

// What comes between the two steps of a deletion does not fail it.
func TestBetweenTheStepsOfADeletion(t *testing.T) {
	t.Parallel()
	change := func(g *registry.Generic, by func(*corev1.Pod)) func(ctx context.Context, key string) {
		return func(ctx context.Context, key string) {
			if _, err := g.Storage.(*interposed).Interface.Update(ctx, key,
				func(current *storage.Item) (storage.Draft, error) {
					obj, err := registry.Object(g.Codec(), current)
					if err != nil {
						return storage.Draft{}, err
					}
					by(obj.(*corev1.Pod))
					return g.Codec().Draft(obj)
				}); err != nil {
				t.Error(err)
			}
		}
	}
	for name, c := range map[string]struct {
		between func(g *registry.Generic) func(ctx context.Context, key string)
		gone    bool
		left    bool
	}{
		"another client finishes it": {func(g *registry.Generic) func(context.Context, string) {
			return func(ctx context.Context, key string) {
				if _, err := g.Storage.(*interposed).Interface.Delete(ctx, key, func(*storage.Item) error {
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		}, true, false},
		"a label": {func(g *registry.Generic) func(context.Context, string) {
			return change(g, func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} })
		}, true, false},
		"a finalizer": {func(g *registry.Generic) func(context.Context, string) {
			return change(g, func(p *corev1.Pod) { p.Finalizers = []string{"a.b/c"} })
		}, false, true},
		"another pod of the name": {func(g *registry.Generic) func(context.Context, string) {
			return change(g, func(p *corev1.Pod) { p.UID = "other" })
		}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := store(t, "pods")
			between := &interposed{Interface: g.Storage}
			g.Storage = between
			if _, err := g.Create(t.Context(), "ns", podOn(""), &metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			between.first = c.between(g)
			_, gone, err := g.Delete(t.Context(), "ns", "p", &metav1.DeleteOptions{})
			if err != nil || gone != c.gone {
				t.Errorf("gone: %v, %v", gone, err)
			}
			if _, err := g.Get(t.Context(), "ns", "p"); (err == nil) != c.left {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}
