package podgc

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

var start = time.Unix(1_000_000, 0)

const (
	mark   = "PATCH /api/v1/namespaces/ns/pods/p/status"
	remove = "DELETE /api/v1/namespaces/ns/pods/p"
	ask    = "GET /api/v1/nodes/n1"
)

func pod(name, node string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid")},
		Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
	}
}

// TestSurplus: beyond the threshold the oldest terminated pods go, also when pods end later.
func TestSurplus(t *testing.T) {
	t.Parallel()
	for threshold, want := range map[int][]string{-1: nil, 0: nil, 1: {"oldest", "middle"}, 2: {"oldest"}, 3: nil,
		100: nil} {
		fake := &controllertest.Fake{}
		ctl, err := New(fake.Deps(t, start), threshold)
		if err != nil {
			t.Fatal(err)
		}
		controllertest.Put(t, ctl.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		for _, ended := range []bool{false, true} {
			if _, err := ctl.Reconcile(t.Context(), controller.Key{}); err != nil || len(fake.Calls()) > 0 {
				t.Errorf("threshold %d, nothing ended: %v, %v", threshold, fake.Names(), err)
			}
			for i, name := range []string{"newest", "running", "oldest", "middle"} {
				p := pod(name, "n1", corev1.PodRunning)
				if ended && name != "running" {
					p.Status.Phase = []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed}[i/2]
				}
				p.CreationTimestamp = metav1.NewTime(start.Add(-time.Duration([]int{0, 9, 5, 1}[i]) * time.Minute))
				controllertest.Put(t, ctl.pods, p)
			}
		}
		if _, err := ctl.Reconcile(t.Context(), controller.Key{}); err != nil {
			t.Error(err)
		}
		var got []string
		for _, name := range fake.Names() {
			got = append(got, strings.TrimPrefix(name, "DELETE /api/v1/namespaces/ns/pods/"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("threshold %d: %v, want %v", threshold, got, want)
		}
	}
}

// TestSweep looks once, and again after a while, and sees what the second sweep does to one pod.
func TestSweep(t *testing.T) {
	t.Parallel()
	noNode := apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "n1")
	noPod := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p")
	now := metav1.NewTime(start)
	bound := func() *corev1.Pod { return pod("p", "n1", corev1.PodRunning) }
	leaving := func() *corev1.Pod { p := pod("p", "", corev1.PodPending); p.DeletionTimestamp = &now; return p }
	going := func() *corev1.Pod { p := bound(); p.DeletionTimestamp = &now; return p }
	for _, c := range []struct {
		name   string
		pod    *corev1.Pod
		node   bool // in the cache
		out    bool // of service, by its taint
		ready  bool
		wait   time.Duration
		answer map[string]error
		want   []string
		fails  bool
	}{
		{name: "node is there", pod: bound(), node: true, wait: time.Hour},
		{name: "being deleted", pod: going(), node: true, wait: time.Hour},
		{name: "being deleted, node out of service", pod: going(), node: true, out: true,
			want: []string{mark, remove, mark, remove}},
		{name: "being deleted, node said to be out of service but ready", pod: going(), node: true, out: true,
			ready: true, wait: time.Hour},
		{name: "node out of service, pod is to stay", pod: bound(), node: true, out: true, wait: time.Hour},
		{name: "in quarantine", pod: bound(), wait: quarantine - time.Second},
		{name: "node gone", pod: bound(), wait: quarantine, answer: map[string]error{ask: noNode},
			want: []string{ask, mark, remove}},
		{name: "node gone, pod at its end", pod: pod("p", "n1", corev1.PodFailed), wait: quarantine,
			answer: map[string]error{ask: noNode}, want: []string{ask, remove}},
		{name: "node only late in the cache", pod: bound(), wait: quarantine, want: []string{ask}},
		{name: "server does not say", pod: bound(), wait: quarantine,
			answer: map[string]error{ask: apierrors.NewInternalError(noNode)}, want: []string{ask}, fails: true},
		{name: "pod went meanwhile", pod: bound(), wait: quarantine,
			answer: map[string]error{ask: noNode, mark: noPod, remove: noPod}, want: []string{ask, mark, remove}},
		{name: "marking fails: no deletion", pod: bound(), wait: quarantine,
			answer: map[string]error{ask: noNode, mark: apierrors.NewInternalError(noPod)},
			want:   []string{ask, mark}, fails: true},
		{name: "deleted before it was scheduled", pod: leaving(), want: []string{mark, remove, mark, remove}},
		{name: "waits to be scheduled", pod: pod("p", "", corev1.PodPending), wait: time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
				if call.Name() == ask {
					return &corev1.Node{}, c.answer[ask]
				}
				return &corev1.Pod{}, c.answer[call.Name()]
			}}
			deps, now := fake.Deps(t, start), start
			deps.Now = func() time.Time { return now }
			ctl, err := New(deps, 0)
			if err != nil {
				t.Fatal(err)
			}
			controllertest.Put(t, ctl.pods, c.pod)
			if c.node {
				n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
				if c.out {
					n.Spec.Taints = []corev1.Taint{
						{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
				}
				if c.ready {
					n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
				}
				controllertest.Put(t, ctl.nodes, n)
			}
			if res, err := ctl.Reconcile(t.Context(), controller.Key{}); err != nil || res.RequeueAfter != sweep {
				t.Errorf("first sweep: %+v, %v", res, err)
			}
			now = start.Add(c.wait)
			if _, err := ctl.Reconcile(t.Context(), controller.Key{}); (err != nil) != c.fails {
				t.Errorf("second sweep: %v", err)
			}
			if got := fake.Names(); !slices.Equal(got, c.want) {
				t.Fatalf("calls %v, want %v", got, c.want)
			}
			for _, call := range fake.Calls() {
				checkCall(t, call, c.pod.Spec.NodeName != "" && !c.node)
			}
		})
	}
}

// checkCall looks at what a call carries; only pods of lost nodes are said to be disrupted.
func checkCall(t *testing.T, call controllertest.Call, disrupted bool) {
	switch call.Name() {
	case mark:
		var p corev1.Pod
		if err := json.Unmarshal(call.Body, &p); err != nil || p.UID != "p-uid" || p.Status.Phase != corev1.PodFailed {
			t.Errorf("patch %s: %v", call.Body, err)
		}
		if got := strings.Contains(string(call.Body), "DisruptionTarget"); got != disrupted {
			t.Errorf("patch %s", call.Body)
		}
		if disrupted && (p.Status.Conditions[0].Reason != "DeletionByPodGC" ||
			p.Status.Conditions[0].LastTransitionTime.Unix() != start.Add(quarantine).Unix()) {
			t.Errorf("condition %+v", p.Status.Conditions[0])
		}
	case remove:
		o := call.Object.(*metav1.DeleteOptions)
		if *o.GracePeriodSeconds != 0 || *o.Preconditions.UID != "p-uid" {
			t.Errorf("deleted with %+v", o)
		}
	}
}

// TestQuarantineStartsAnew when the node was back in between.
func TestQuarantineStartsAnew(t *testing.T) {
	t.Parallel()
	fake := &controllertest.Fake{}
	deps, now := fake.Deps(t, start), start
	deps.Now = func() time.Time { return now }
	ctl, err := New(deps, 0)
	if err != nil {
		t.Fatal(err)
	}
	controllertest.Put(t, ctl.pods, pod("p", "n1", corev1.PodRunning))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	for step, there := range []bool{false, true, false, false} {
		if there {
			controllertest.Put(t, ctl.nodes, node)
		} else if err := ctl.nodes.Raw().GetIndexer().Delete(node); err != nil {
			t.Fatal(err)
		}
		if _, err := ctl.Reconcile(t.Context(), controller.Key{}); err != nil || len(fake.Calls()) != 0 {
			t.Errorf("step %d: %v, %v", step, fake.Names(), err)
		}
		now = now.Add(quarantine - time.Second)
	}
}
