package admission

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// list is a list of resources of "cpu 500m" and the like.
func list(of map[corev1.ResourceName]string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range of {
		out[name] = resource.MustParse(q)
	}
	return out
}

// pod is one that requests that much CPU; it was created at that second.
func pod(uid types.UID, cpu string, second int64) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Name: string(uid),
		CreationTimestamp: metav1.Unix(second, 0)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: list(map[corev1.ResourceName]string{"cpu": cpu})}}}},
		Status: corev1.PodStatus{QOSClass: corev1.PodQOSBurstable}}
}

func static(p *corev1.Pod) *corev1.Pod {
	p.Annotations = map[string]string{runtime.AnnotationConfigSource: runtime.SourceFile}
	return p
}

// admitter is one of a node with 1 CPU and 10 pods; woken gets who was woken.
func admitter(woken *[]types.UID) *Admitter {
	return New(Config{Node: func() *corev1.Node { return nil },
		Allocatable: func() corev1.ResourceList {
			return list(map[corev1.ResourceName]string{"cpu": "1", "pods": "10", "x.y/none": "0"})
		},
		Refuse:  func(*corev1.Pod) *Rejection { return nil },
		Sysctls: func(*corev1.Pod) error { return nil },
		AppArmor: func(p *corev1.Pod) error {
			if p.Name == "confined" {
				return errors.New("Cannot enforce AppArmor")
			}
			return nil
		},
		MayResize: func(p *corev1.Pod, _ runtime.Resources) string {
			if p.Name == "pinned" {
				return "pinned"
			}
			return ""
		},
		Allocated:  func(name corev1.ResourceName) bool { return name == "example.com/device" },
		Preempted:  func(types.UID, corev1.ResourceName) {},
		Checkpoint: saved{},
		Accepted:   func(Trigger) {},
		Log:        slog.New(slog.DiscardHandler),
		Wake: func(uid types.UID) {
			if woken != nil {
				*woken = append(*woken, uid)
			}
		}})
}

func expect(t *testing.T, a *Admitter, p *corev1.Pod, want Verdict, reason string) {
	t.Helper()
	got, why := a.Admit(p)
	if why == nil {
		why = &Rejection{}
	}
	if got != want || why.Reason != reason {
		t.Errorf("pod %s: %v %+v, want %v %s", p.UID, got, why, want, reason)
	}
}

// What is given piece by piece is not refused by its amount, of which the node may have none.
func TestAllocatedElsewhere(t *testing.T) {
	t.Parallel()
	a := admitter(nil)
	a.Open()
	for name, want := range map[corev1.ResourceName]Verdict{"example.com/device": Admitted, "x.y/none": Rejected} {
		p := pod(types.UID(name), "1m", 0)
		p.Spec.Containers[0].Resources.Requests = list(map[corev1.ResourceName]string{name: "2"})
		if got, why := a.Admit(p); got != want {
			t.Errorf("%s: %v %+v", name, got, why)
		}
	}
}

// However many ask at the same time, no more pods are admitted than there is room for.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(p *corev1.Pod){
		"last CPU":       func(*corev1.Pod) {},
		"last place":     func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} },
		"last host port": func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := admitter(nil)
			a.Open()
			want := map[string]int32{"last CPU": 5, "last place": 10, "last host port": 1}[name]
			var admitted atomic.Int32
			var wg sync.WaitGroup
			for i := range 100 {
				p := pod(types.UID(fmt.Sprint(i)), "200m", int64(i%7))
				change(p)
				wg.Go(func() {
					a.Add(p)
					if verdict, _ := a.Admit(p); verdict == Admitted {
						admitted.Add(1)
					} else {
						a.Release(p.UID)
					}
				})
			}
			wg.Wait()
			if got := admitted.Load(); got != want {
				t.Errorf("%d pods were admitted, there is room for %d", got, want)
			}
		})
	}
}

// After a restart of the kubelet, a pod that ran before is not put out by one that asks sooner; new ones go by age.
func TestOrder(t *testing.T) {
	t.Parallel()
	var woken []types.UID
	a := admitter(&woken)
	a.Ran("ran")
	youngest, older, ran := pod("youngest", "300m", 9), pod("older", "300m", 5), pod("ran", "600m", 7)
	a.Add(youngest)
	expect(t, a, youngest, Waiting, "")
	a.Add(older)
	a.Add(ran)
	a.Open()
	slices.Sort(woken)
	if !slices.Equal(woken, []types.UID{"older", "youngest"}) {
		t.Errorf("woken: %v", woken)
	}
	expect(t, a, youngest, Rejected, "OutOfcpu")
	expect(t, a, older, Admitted, "")
	expect(t, a, ran, Admitted, "")
	a.Release("ran")
	expect(t, a, pod("later", "700m", 10), Admitted, "")
}

// A pod that ran before has its place even where the node has become too small for all that run.
func TestWhatRanIsNeverRefused(t *testing.T) {
	t.Parallel()
	a := admitter(nil)
	for _, uid := range []types.UID{"a", "b"} {
		a.Ran(uid)
		expect(t, a, pod(uid, "800m", 1), Admitted, "")
	}
}

// A static pod does not wait for the API server, which may be one; nobody else decides of it.
func TestStaticPodsDoNotWait(t *testing.T) {
	t.Parallel()
	a := admitter(nil)
	s, after := static(pod("static", "600m", 0)), pod("after", "600m", 5)
	a.Add(s)
	a.Add(after)
	a.Open()
	expect(t, a, after, Admitted, "") // the static one may have to wait for its predecessor's end
	a.Release("after")
	expect(t, a, s, Admitted, "")
}

// Who has gone, has ended or goes takes no place before the others.
func TestWhoTakesNoPlace(t *testing.T) {
	t.Parallel()
	ended, deleted := pod("ended", "1", 1), pod("deleted", "1", 1)
	ended.Status.Phase = corev1.PodSucceeded
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(3, 0)}
	for name, tell := range map[string]func(*Admitter){
		"ended":           func(a *Admitter) { a.Add(ended) },
		"deleted":         func(a *Admitter) { a.Add(deleted) },
		"deleted later":   func(a *Admitter) { a.Add(pod("deleted", "1", 1)); a.Update(deleted) },
		"gone":            func(a *Admitter) { a.Add(pod("gone", "1", 1)); a.Withdraw("gone") },
		"changed at rest": func(a *Admitter) { p := pod("u", "1", 1); a.Add(p); a.Release("u"); a.Update(p) },
	} {
		a := admitter(nil)
		tell(a)
		a.Open()
		t.Run(name, func(t *testing.T) { expect(t, a, pod("new", "1", 9), Admitted, "") })
	}
}

func TestAPlaceIsThePodsNewestClaim(t *testing.T) {
	t.Parallel()
	a := admitter(nil)
	a.Open()
	expect(t, a, pod("a", "900m", 1), Admitted, "")
	a.Update(pod("a", "400m", 1))
	expect(t, a, pod("b", "700m", 2), Rejected, "OutOfcpu")
	a.Release("b")
	expect(t, a, pod("c", "600m", 3), Admitted, "")
}

// A pod that was deleted at once is gone from the API server while its containers still run: who takes its place waits
// for their end.
func TestAPlaceIsTheirsUntilTheEnd(t *testing.T) {
	t.Parallel()
	var woken []types.UID
	a := admitter(&woken)
	a.Open()
	port := func(p *corev1.Pod) *corev1.Pod {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
		return p
	}
	expect(t, a, port(pod("a", "400m", 1)), Admitted, "")
	expect(t, a, pod("stays", "100m", 2), Admitted, "")
	a.Withdraw("a")
	expect(t, a, pod("small", "200m", 3), Admitted, "") // there is room beside
	needs, listens := pod("needs", "500m", 4), port(pod("listens", "100m", 5))
	expect(t, a, needs, Waiting, "")
	expect(t, a, listens, Waiting, "")
	expect(t, a, pod("too many", "200m", 6), Rejected, "OutOfcpu") // with those that wait
	if len(woken) != 0 {
		t.Errorf("woken: %v", woken)
	}
	a.Release("a")
	slices.Sort(woken)
	if !slices.Equal(woken, []types.UID{"listens", "needs"}) {
		t.Errorf("woken: %v", woken)
	}
	expect(t, a, needs, Admitted, "")
	expect(t, a, listens, Admitted, "")
}

// TestAppArmor: a pod that cannot be confined is refused, after what else the node refuses it for, and no pod loses its
// place for it.
func TestAppArmor(t *testing.T) {
	t.Parallel()
	var woken []types.UID
	a := admitter(&woken)
	a.Open()
	lower, large, critical := pod("lower", "1", 1), pod("large", "2", 3), pod("critical", "1", 4)
	large.Name, critical.Name = "confined", "confined"
	priority := int32(2000001000)
	critical.Spec.Priority = &priority
	if verdict, why := a.Admit(lower); verdict != Admitted {
		t.Fatal(verdict, why)
	}
	for reason, p := range map[string]*corev1.Pod{"OutOfcpu": large, "AppArmor": critical} {
		if verdict, why := a.Admit(p); verdict != Rejected || why.Reason != reason {
			t.Errorf("%s: %v, %+v", reason, verdict, why)
		}
	}
	if verdict, why := a.Admit(lower); verdict != Admitted {
		t.Errorf("lost its place: %v, %+v", verdict, why)
	}
}
