package queue

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/profile"
)

// BenchmarkMoved: a pod event while thousands of pods wait for their turn to be spread, up to its end (ns/event), then
// Pop's share of it for each pod that it helped (ns/pop); both are CPU time. The event must not cost as much as pods
// wait, not even if it helps all of them. With own labels each waiting pod has labels that no other has.
func BenchmarkMoved(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		for _, own := range []bool{false, true} {
			for _, event := range []struct {
				name string
				of   func(b *waitingCrowd) clusterevent.Event
			}{
				{"helpsNone", func(c *waitingCrowd) clusterevent.Event {
					return c.event(clusterevent.Add, "other", "")
				}},
				{"helpsAll", func(c *waitingCrowd) clusterevent.Event { return c.event(clusterevent.Add, "web", "") }},
				{"letsAllNear", func(c *waitingCrowd) clusterevent.Event {
					return c.event(clusterevent.Delete, "other", "web")
				}},
			} {
				b.Run(fmt.Sprintf("%s/own=%v/%d", event.name, own, n), func(b *testing.B) {
					c := newWaitingCrowd(b, n, own)
					e := event.of(c)
					var moved, popped time.Duration
					pods := 0
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					for b.Loop() {
						begin := cpu(b)
						c.q.Moved(e)
						end := cpu(b)
						moved += end - begin
						if c.q.watches.any() {
							c.pop()
							popped += cpu(b) - end
							pods += len(c.pods)
							c.fail()
						}
					}
					b.ReportMetric(0, "ns/op") // of both, and of what makes the pods wait again
					b.ReportMetric(float64(moved)/float64(b.N), "ns/event")
					if pods > 0 {
						b.ReportMetric(float64(popped)/float64(pods), "ns/pop")
					}
				})
			}
		}
	}
}

// cpu is what the thread has used: other work on the machine counts in wall time only.
func cpu(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// waitingCrowd is pods in a queue that nothing has helped yet.
type waitingCrowd struct {
	b    *testing.B
	q    *Queue
	pods []*framework.QueuedPod
}

func newWaitingCrowd(b *testing.B, n int, own bool) *waitingCrowd {
	p := allPlugins(b)
	c := &waitingCrowd{b: b, q: New(Config{Profile: func(*model.PodInfo) *profile.Profile {
		return p
	}, Less: p.Sort.Less, Now: time.Now})}
	for i := range n {
		pod := c.pod(i, "web")
		if own {
			pod.Labels["statefulset.kubernetes.io/pod-name"] = pod.Name
		}
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone,
				WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
		c.q.Add(model.NewPodInfo(pod))
	}
	c.pop()
	c.fail()
	return c
}

func (c *waitingCrowd) pod(i int, app string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("p", i),
		UID: types.UID(fmt.Sprint(i)), Labels: map[string]string{"app": app}}}
}

// event is about a pod of one app that keeps another away.
func (c *waitingCrowd) event(a clusterevent.Action, app, away string) clusterevent.Event {
	p := c.pod(-1, app)
	if away != "" {
		p.Spec.Affinity = &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey:   corev1.LabelHostname,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": away}}}}}}
	}
	e := clusterevent.Event{Kind: clusterevent.AssignedPod, Action: a, New: model.NewPodInfo(p)}
	if a == clusterevent.Delete {
		e.Old, e.New = e.New, nil
	}
	return e
}

// pop takes every pod that is to be tried.
func (c *waitingCrowd) pop() {
	for {
		it, _, again := c.q.next()
		if it == nil && !again {
			return
		}
		if it != nil {
			c.pods = append(c.pods, it.QueuedPod)
		}
	}
}

// fail has the popped pods wait.
func (c *waitingCrowd) fail() {
	for _, p := range c.pods {
		c.q.Requeue(p, map[string]bool{"PodTopologySpread": true, "InterPodAffinity": true}, nil, false)
	}
	c.pods = c.pods[:0]
}

// BenchmarkLanding: one of thousands of pods that wait in flight for their volumes lands, beside two events for each
// (ns/pod, CPU time). It must not cost as much as pods are in flight.
func BenchmarkLanding(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		for _, order := range []string{"oldestFirst", "newestFirst"} {
			b.Run(fmt.Sprintf("%s/%d", order, n), func(b *testing.B) {
				p := allPlugins(b)
				q := New(Config{Profile: func(*model.PodInfo) *profile.Profile {
					return p
				}, Less: p.Sort.Less, Now: time.Now})
				c := &waitingCrowd{b: b, q: q}
				event := c.event(clusterevent.Add, "other", "")
				var took time.Duration
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				for b.Loop() {
					for i := range n {
						q.Add(model.NewPodInfo(c.pod(i, "web")))
					}
					for range n {
						it, _, _ := q.next()
						c.pods = append(c.pods, it.QueuedPod)
						q.Moved(event)
					}
					if order == "newestFirst" {
						slices.Reverse(c.pods)
					}
					begin := cpu(b)
					for _, pod := range c.pods {
						q.Done(pod.Pod.UID)
						q.Moved(event)
					}
					took += cpu(b) - begin
					c.pods = c.pods[:0]
				}
				b.ReportMetric(0, "ns/op") // of making and popping them, too
				b.ReportMetric(float64(took)/float64(b.N*n), "ns/pod")
			})
		}
	}
}
