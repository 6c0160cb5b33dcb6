package backends

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
)

func backendPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{"app": "web"}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func TestBackendChanged(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	for _, c := range []struct {
		name   string
		change func(*corev1.Pod)
		want   bool
	}{
		{"nothing", func(*corev1.Pod) {}, false},
		{"version and annotations", func(p *corev1.Pod) {
			p.ResourceVersion, p.Annotations = "9", map[string]string{"a": "b"}
		}, false},
		{"another condition", func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady})
		}, false},
		{"scheduled", func(p *corev1.Pod) { p.Spec.NodeName = "n1" }, true},
		{"being deleted", func(p *corev1.Pod) { p.DeletionTimestamp = &now }, true},
		{"not ready", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		{"ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		{"second address", func(p *corev1.Pod) {
			p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: "fd00::1"})
		}, true},
		{"labels", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "db"} }, true},
	} {
		p := backendPod()
		c.change(p)
		if got := backendChanged(backendPod(), p); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if got := backendChanged(p, backendPod()); got != c.want {
			t.Errorf("%s, backwards: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestWakes plays changes of Services and pods and sees which Services are to be reconciled.
func TestWakes(t *testing.T) {
	t.Parallel()
	woken := map[string]bool{}
	b := newIndex(func(k controller.Key) {
		woken[k.String()] = true
	}, controller.InformerFor(controller.NewInformers(nil), core.Pods))
	services, pods := b.ofServices(), b.ofPods()
	expect := func(step string, want ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(woken)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", step, got, want)
		}
		clear(woken)
	}
	for _, s := range []*corev1.Service{
		selecting("ns", "web", map[string]string{"app": "web"}), selecting("ns", "db", map[string]string{"app": "db"}),
		selecting("ns", "both", map[string]string{"app": "web", "tier": "front"}),
		selecting("ns", "none", nil), selecting("other", "web", map[string]string{"app": "web"}),
	} {
		services.Add(s)
	}
	expect("start", "ns/both", "ns/db", "ns/none", "ns/web", "other/web")
	p := backendPod()
	pods.Add(p)
	expect("added", "ns/web")
	change := func(change func(*corev1.Pod)) {
		old := p
		p = p.DeepCopy()
		change(p)
		pods.Update(old, p)
	}
	change(func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} })
	expect("annotated")
	change(func(p *corev1.Pod) { p.Labels = map[string]string{"app": "db"} })
	expect("relabelled", "ns/db", "ns/web")
	change(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	expect("failed", "ns/db")
	pods.Delete(p)
	expect("deleted", "ns/db")
	services.Update(selecting("ns", "db", map[string]string{"app": "db"}),
		selecting("ns", "db", map[string]string{"app": "web"}))
	services.Delete(selecting("ns", "web", nil))
	expect("services changed", "ns/db", "ns/web")
	p = backendPod()
	p.Labels["tier"] = "front"
	pods.Add(p)
	expect("added behind them", "ns/both", "ns/db")
	for _, name := range []string{"db", "both", "none"} {
		services.Delete(selecting("ns", name, nil))
	}
	services.Delete(selecting("other", "web", nil))
	expect("services gone", "ns/both", "ns/db", "ns/none", "other/web")
	if len(b.byPair)+len(b.filed) != 0 {
		t.Errorf("left: %v %v", b.byPair, b.filed)
	}
}

// TestOf: the pods of a Service are those that it selects now, whatever it was filed under, and in its namespace only.
func TestOf(t *testing.T) {
	t.Parallel()
	pods := controller.InformerFor(controller.NewInformers(nil), core.Pods)
	for ns, list := range map[string][]map[string]string{
		"ns":    {{"app": "web", "tier": "front"}, {"app": "web", "tier": "back"}, {"app": "db", "tier": "back"}, nil},
		"other": {{"app": "web", "tier": "front"}},
	} {
		for i, labels := range list {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprint("p", i), Labels: labels}}
			if err := pods.Raw().GetIndexer().Add(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := newIndex(nil, pods)
	for _, c := range []struct {
		filed, selector labels.Set
		want            []string
	}{
		{nil, labels.Set{"app": "web"}, []string{"p0", "p1"}},
		{labels.Set{"app": "web"}, labels.Set{"app": "web"}, []string{"p0", "p1"}},
		{labels.Set{"app": "web"}, labels.Set{"app": "db"}, []string{"p2"}},
		{labels.Set{"app": "web", "tier": "back"}, labels.Set{"app": "web", "tier": "back"}, []string{"p1"}},
		{labels.Set{"app": "web"}, labels.Set{"tier": "back"}, []string{"p1", "p2"}},
		{labels.Set{"app": "web"}, labels.Set{"tier": "none"}, nil},
	} {
		b.file(controller.Key{Namespace: "ns", Name: "s"}, c.filed)
		var got []string
		for _, p := range b.Of(selecting("ns", "s", c.selector)) {
			got = append(got, p.Name)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("filed by %v, selecting %v: %v, want %v", c.filed, c.selector, got, c.want)
		}
	}
}

// BenchmarkIndex is one event of a pod beside many Services of its namespace that share a label, each with a pod of its
// own: which Services it concerns, and which pods are behind one.
func BenchmarkIndex(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			pods := controller.InformerFor(controller.NewInformers(nil), core.Pods)
			all := newIndex(func(controller.Key) {}, pods)
			for i := range n {
				own := labels.Set{"app": fmt.Sprint(i), "tier": "x", "pod-template-hash": "1"}
				all.file(controller.Key{Namespace: "ns", Name: fmt.Sprint(i)},
					labels.Set{"app": fmt.Sprint(i), "tier": "x"})
				if err := pods.Raw().GetIndexer().Add(
					&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint(i),
						Labels: own}}); err != nil {
					b.Fatal(err)
				}
			}
			p, svc := pods.List()[0], selecting("ns", "7", labels.Set{"app": "7", "tier": "x"})
			for b.Loop() {
				all.Wake(p)
				if found := all.Of(svc); len(found) != 1 {
					b.Fatalf("%d pods", len(found))
				}
			}
		})
	}
}

func selecting(ns, name string, sel map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: corev1.ServiceSpec{Selector: sel}}
}
