package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler"
	"bonsai/pkg/scheduler/cache"
	"bonsai/pkg/scheduler/decide"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/podstatus"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/queue"
	"bonsai/pkg/scheduler/volumes"
)

// server stands for the API server: it binds, and shows bound pods to the scheduler as a watch would.
type server struct {
	mu         sync.Mutex
	s          *scheduler.Scheduler
	bound      map[string]string
	conditions map[string]*corev1.PodCondition
	events     []string
	refuse     []error // of the next bindings
	lost       error   // of all writes of claims
	silent     bool    // bindings are not shown
	hang       bool    // bindings are not answered
	writing    time.Duration
	calls      []string
	stop       func() // ends the leadership, returns when Run has
	metrics    *prometheus.Registry
}

func (f *server) Bind(ctx context.Context, pod *corev1.Pod, node string) error {
	if f.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, "bind "+pod.Name)
	if len(f.refuse) > 0 {
		err := f.refuse[0]
		f.refuse = f.refuse[1:]
		return err
	}
	if was := f.bound[pod.Name]; was != "" {
		return fmt.Errorf("pod %s is bound twice, to %s and %s", pod.Name, was, node)
	}
	f.bound[pod.Name] = node
	if !f.silent {
		after := pod.DeepCopy()
		after.Spec.NodeName = node
		f.s.PodChanged(pod, after)
	}
	return nil
}

func (f *server) PatchStatus(_ context.Context, pod *corev1.Pod, c *corev1.PodCondition, _ *string) error {
	time.Sleep(f.writing)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, "write "+pod.Name)
	f.conditions[pod.Name] = c
	return nil
}

func (f *server) Event(pod *corev1.Pod, _, _, reason, _, note string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, fmt.Sprintf("%s %s: %s", pod.Name, reason, note))
}

func (f *server) SelectorFor(*corev1.Pod) labels.Selector { return nil }
func (f *server) NamespaceLabels(string) labels.Set       { return nil }
func (f *server) Epoch() int64                            { return 0 }
func (f *server) where(pod string) string                 { f.mu.Lock(); defer f.mu.Unlock(); return f.bound[pod] }
func (f *server) condition(pod string) *corev1.PodCondition {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conditions[pod]
}

// start runs a scheduler until the test ends.
func start(t *testing.T) *server {
	t.Helper()
	f := &server{bound: map[string]string{}, conditions: map[string]*corev1.PodCondition{},
		metrics: prometheus.NewPedanticRegistry()}
	known := volumes.New(f)
	p, err := profile.New("s",
		plugins.Default(plugins.Config{Binder: f, Workloads: f, Namespaces: f, Volumes: known, Node: f.node}))
	if err != nil {
		t.Fatal(err)
	}
	nominator := model.NewNominator()
	counted := scheduler.NewMetrics(f.metrics)
	f.s, err = scheduler.New(scheduler.Config{
		Statuses: podstatus.New(f, 4, slog.New(slog.DiscardHandler)), Recorder: f,
		Profiles: map[string]*profile.Profile{"s": p}, Cache: cache.New(), Nominator: nominator, Volumes: known,
		Queue: queue.New(queue.Config{Profile: func(*model.PodInfo) *profile.Profile {
			return p
		}, Less: p.Sort.Less, Now: time.Now, Incoming: counted.Incoming}),
		Decider: decide.NewIncremental(nominator, func(int) int {
			return 0
		}), Binders: 4, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Metrics: counted,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.metrics.MustRegister(&scheduler.Collector{Queue: f.s.Queue, Cache: f.s.Cache})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.s.Run(ctx) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	t.Cleanup(f.stop)
	return f
}

func node(name, cpu string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			"cpu": resource.MustParse(cpu), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("10")}}}
}

func pending(name, cpu string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{SchedulerName: "s",
			Containers: []corev1.Container{
				{Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}
}

// inBubble runs f with a scheduler in a bubble of its own time.
func inBubble(t *testing.T, f func(t *testing.T, s *server)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, start(t)) })
}

func TestNoNodeIsPromisedTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, f *server) {
		f.silent = true // only the assumptions keep the pods apart
		for i := range 5 {
			f.s.NodeChanged(nil, node(fmt.Sprint("n", i), "1"))
		}
		for i := range 7 {
			f.s.PodChanged(nil, pending(fmt.Sprint("p", i), "1"))
		}
		synctest.Wait()
		used := map[string]int{}
		for _, n := range f.bound {
			used[n]++
		}
		if len(used) != 5 || len(f.bound) != 5 {
			t.Errorf("bound %v, want one pod on each of 5 nodes", f.bound)
		}
		if c := f.s.Queue.Counts(); c.Unschedulable != 2 {
			t.Errorf("%+v, want 2 pods left over", c)
		}
	})
}

func TestUnschedulablePodSaysWhyAndIsBoundWhenRoomComes(t *testing.T) {
	inBubble(t, func(t *testing.T, f *server) {
		f.s.NodeChanged(nil, node("small", "1"))
		f.s.PodChanged(nil, pending("p", "2"))
		synctest.Wait()
		const why = "0/1 nodes are available: 1 Insufficient cpu."
		if c := f.condition("p"); c == nil || c.Reason != "Unschedulable" || c.Status != "False" || c.Message != why {
			t.Fatalf("condition %+v, want %q", c, why)
		}
		if len(f.events) != 1 || f.events[0] != "p FailedScheduling: "+why {
			t.Errorf("events %q", f.events)
		}
		w := httptest.NewRecorder()
		f.s.Explain(w, httptest.NewRequest("GET", "/debug/scheduling", nil))
		if body := w.Body.String(); !strings.Contains(body,
			`"small":{"plugin":"NodeResourcesFit","reasons":["Insufficient cpu"]`) {
			t.Errorf("explanation %s", body)
		}
		f.s.NodeChanged(nil, node("big", "4"))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := f.where("p"); got != "big" {
			t.Errorf("bound to %q, want big", got)
		}
		if last := f.events[len(f.events)-1]; last != "p Scheduled: Successfully assigned d/p to big" {
			t.Errorf("last event %q", last)
		}
	})
}

func TestNoNodesAtAll(t *testing.T) {
	inBubble(t, func(t *testing.T, f *server) {
		f.s.PodChanged(nil, pending("p", "1"))
		synctest.Wait()
		if c := f.condition("p"); c == nil || c.Message != "no nodes available to schedule pods" {
			t.Fatalf("condition %+v", c)
		}
		f.s.NodeChanged(nil, node("n", "1"))
		time.Sleep(time.Second)
		synctest.Wait()
		if f.where("p") != "n" {
			t.Error("not bound after a node came")
		}
	})
}

func TestFailedBindingIsTriedAgainAndItsRoomIsFree(t *testing.T) {
	inBubble(t, func(t *testing.T, f *server) {
		f.refuse = []error{errors.New("connection reset"),
			apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", errors.New("changed"))}
		f.s.NodeChanged(nil, node("n", "1"))
		f.s.PodChanged(nil, pending("p", "1"))
		synctest.Wait()
		if f.where("p") != "" {
			t.Fatal("bound at once")
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if f.where("p") != "n" {
			t.Errorf("not bound after two failures; %+v", f.s.Queue.Counts())
		}
	})
}

func TestPodDeletedWhileBinding(t *testing.T) {
	inBubble(t, func(t *testing.T, f *server) {
		f.refuse = []error{apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "gone")}
		f.s.NodeChanged(nil, node("n", "1"))
		f.s.PodChanged(nil, pending("gone", "1"))
		synctest.Wait()
		f.s.PodChanged(nil, pending("next", "1"))
		synctest.Wait()
		if f.where("next") != "n" || f.s.Queue.Counts() != (queue.Counts{}) {
			t.Errorf("next is on %q, queue %+v", f.where("next"), f.s.Queue.Counts())
		}
	})
}

func TestDeletionOfAPodMakesRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, f *server) {
		f.s.NodeChanged(nil, node("n", "1"))
		f.s.PodChanged(nil, pending("first", "1"))
		synctest.Wait()
		f.s.PodChanged(nil, pending("second", "1"))
		synctest.Wait()
		gone := pending("first", "1")
		gone.Spec.NodeName = "n"
		f.s.PodChanged(gone, nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if f.where("second") != "n" {
			t.Errorf("second is on %q", f.where("second"))
		}
	})
}

// TestRoomThatWasKeptIsFree: a pod that had to leave room to a nominated one gets it when that one is deleted, also if
// it only begins to go, when it is nominated no more, and when it is bound elsewhere.
func TestRoomThatWasKeptIsFree(t *testing.T) {
	on := func(p *corev1.Pod, node string) *corev1.Pod { p.Spec.NodeName = node; return p }
	withPort := func(p *corev1.Pod) *corev1.Pod {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{
			{ContainerPort: 80, HostPort: 80, Protocol: corev1.ProtocolTCP}}
		return p
	}
	for name, give := range map[string]func(f *server, important *corev1.Pod){
		"deleted": func(f *server, important *corev1.Pod) { f.s.PodChanged(important, nil) },
		"going": func(f *server, important *corev1.Pod) {
			p := important.DeepCopy()
			p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			f.s.PodChanged(important, p)
		},
		"taken back": func(f *server, important *corev1.Pod) {
			p := important.DeepCopy()
			p.Status.NominatedNodeName = ""
			f.s.PodChanged(important, p)
		},
		"bound elsewhere": func(f *server, _ *corev1.Pod) { f.s.PodChanged(on(pending("w", "4"), "m"), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *server) {
				m := node("m", "4")
				m.Labels = map[string]string{"not": "for p"}
				f.s.NodeChanged(nil, m)
				f.s.NodeChanged(nil, node("n", "4"))
				f.s.PodChanged(nil, on(pending("w", "4"), "m"))
				f.s.PodChanged(nil, on(pending("v", "3"), "n"))
				important := withPort(pending("important", "4"))
				important.Spec.Priority, important.Status.NominatedNodeName = new(int32(1)), "n"
				f.s.PodChanged(nil, important)
				p := withPort(pending("p", "1"))
				p.Spec.Affinity = &corev1.Affinity{
					NodeAffinity: &corev1.NodeAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
							NodeSelectorTerms: []corev1.NodeSelectorTerm{
								{MatchExpressions: []corev1.NodeSelectorRequirement{
									{Key: "not", Operator: corev1.NodeSelectorOpDoesNotExist}}}}}}}
				f.s.PodChanged(nil, p)
				synctest.Wait()
				if f.where("p") != "" {
					t.Fatal("the room of the nominated pod was taken")
				}
				give(f, important)
				time.Sleep(3 * time.Second)
				synctest.Wait()
				if f.where("p") != "n" {
					t.Errorf("the pod waits on: %+v", f.s.Queue.Counts())
				}
			})
		})
	}
}

func TestOtherSchedulersPodsAreLeftAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, f *server) {
		f.s.NodeChanged(nil, node("n", "1"))
		p := pending("p", "1")
		p.Spec.SchedulerName = "another"
		f.s.PodChanged(nil, p)
		synctest.Wait()
		if f.where("p") != "" || f.condition("p") != nil {
			t.Error("touched")
		}
	})
}

// TestNothingGoesOnAfterTheLeadership: another scheduler may lead as soon as the context has ended, so a binding that
// is not answered must not be waited for, and its failure must not be written.
func TestNothingGoesOnAfterTheLeadership(t *testing.T) {
	inBubble(t, func(t *testing.T, f *server) {
		f.hang = true
		f.s.NodeChanged(nil, node("n", "1"))
		f.s.PodChanged(nil, pending("p", "1"))
		synctest.Wait()
		begin := time.Now()
		f.stop()
		if d := time.Since(begin); d != 0 {
			t.Errorf("Run returns %s after the leadership ended", d)
		}
		if len(f.calls) > 0 || len(f.events) > 0 {
			t.Errorf("calls %q, events %q", f.calls, f.events)
		}
	})
}

// TestConditionIsWrittenBeforeTheBinding: PodScheduled=False that lands after the binding would change a bound pod.
func TestConditionIsWrittenBeforeTheBinding(t *testing.T) {
	inBubble(t, func(t *testing.T, f *server) {
		f.writing = 5 * time.Second
		f.s.NodeChanged(nil, node("small", "1"))
		f.s.PodChanged(nil, pending("p", "2"))
		synctest.Wait()
		f.s.NodeChanged(nil, node("big", "2"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := strings.Join(f.calls, ", "); got != "write p, bind p" {
			t.Errorf("calls %q", got)
		}
	})
}
