package nodelifecycle

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

const grace = 40 * time.Second

// world is a controller with ready nodes, and what the API server says of their leases.
type world struct {
	*Controller
	fake   *controllertest.Fake
	now    time.Time
	leases map[string]time.Time // on the server
	down   bool
	// late: the watch brings a lease while the server is asked for it.
	late bool
}

func newWorld(t *testing.T, names ...string) *world {
	t.Helper()
	w := &world{now: time.Unix(1_000_000, 0), leases: map[string]time.Time{}}
	w.fake = &controllertest.Fake{Answer: w.answer}
	d := w.fake.Deps(t, w.now)
	d.Now = func() time.Time { return w.now }
	c, err := New(d, Config{Grace: grace, Startup: 2 * grace, Period: 5 * time.Second, Evictions: evictions()})
	if err != nil {
		t.Fatal(err)
	}
	w.Controller = c
	for _, name := range names {
		n := node(corev1.ConditionTrue)
		n.Name, n.Status.Conditions[0].LastHeartbeatTime = name, metav1.NewTime(w.now)
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "on-" + name},
			Spec: corev1.PodSpec{NodeName: name},
			Status: corev1.PodStatus{
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
		controllertest.Put(t, c.nodes, n)
		controllertest.Put(t, c.pods, p)
		w.leases[name] = w.now
		c.leaseSeen(lease(name, w.now))
	}
	w.reconcile(t, names...)
	return w
}

func lease(name string, at time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: name},
		Spec: coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(at))}}
}

func (w *world) answer(call controllertest.Call) (runtime.Object, error) {
	switch {
	case w.down:
		return nil, apierrors.NewInternalError(errors.New("etcd is away"))
	case call.Method == "GET":
		list := &coordinationv1.LeaseList{}
		_, name, _ := strings.Cut(call.Query.Get("fieldSelector"), "=")
		if at, ok := w.leases[name]; ok {
			list.Items = append(list.Items, *lease(name, at))
			if w.late {
				w.leaseSeen(lease(name, at))
			}
		}
		return list, nil
	}
	return call.Object, nil
}

// reconcile looks at the nodes and gives the last error.
func (w *world) reconcile(t *testing.T, names ...string) (err error) {
	t.Helper()
	for _, name := range names {
		if _, e := w.Reconcile(t.Context(), controller.Key{Name: name}); e != nil {
			err = e
		}
	}
	return err
}

// writes are the changes that the controller made.
func (w *world) writes() []string {
	return slices.DeleteFunc(w.fake.Names(), func(n string) bool { return strings.HasPrefix(n, "GET") })
}

// TestBrokenWatch: the nodes renewed their leases, but the controller's watch did not bring that. The server is asked
// before a node is given up.
func TestBrokenWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	w.now = w.now.Add(grace + time.Second)
	for name := range w.leases {
		w.leases[name] = w.now.Add(-time.Second)
	}
	if err := w.reconcile(t, "a", "b", "c"); err != nil || len(w.writes()) > 0 {
		t.Errorf("%v, writes %v", err, w.writes())
	}
	w.now = w.now.Add(grace + time.Second)
	w.leases["b"] = w.now
	if err := w.reconcile(t, "a", "b"); err != nil {
		t.Error(err)
	}
	want := []string{"PUT /api/v1/nodes/a/status", "PUT /api/v1/nodes/a", "PUT /api/v1/namespaces/ns/pods/on-a/status"}
	if !slices.Equal(w.writes(), want) {
		t.Errorf("writes %v, want %v", w.writes(), want)
	}
}

// TestLateWatch: a node renewed its lease, and the watch brings that between the look at the cache and the server's
// answer, as when all of a cluster was frozen and goes on. It is not given up.
func TestLateWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	w.now, w.late = w.now.Add(grace+time.Second), true
	w.leases["a"] = w.now.Add(-time.Second)
	if err := w.reconcile(t, "a"); err != nil || len(w.writes()) > 0 {
		t.Errorf("%v, writes %v", err, w.writes())
	}
}

// TestClockPutBack: a node's heartbeats count also while its clock says earlier than before.
func TestClockPutBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	for range 6 {
		w.now = w.now.Add(grace / 2)
		w.leases["a"] = w.now.Add(-time.Hour)
		w.leaseSeen(lease("a", w.leases["a"]))
		if err := w.reconcile(t, "a"); err != nil || len(w.writes()) > 0 {
			t.Fatalf("%v, writes %v", err, w.writes())
		}
	}
}

// TestServerAway: while the API server does not answer, the nodes cannot renew either. They get a grace period after
// it.
func TestServerAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	w.now, w.down = w.now.Add(10*grace), true
	if err := w.reconcile(t, "a"); err == nil {
		t.Error("no error")
	}
	w.down = false
	w.now = w.now.Add(grace - time.Second)
	if err := w.reconcile(t, "a"); err != nil || len(w.writes()) > 0 {
		t.Errorf("just after: %v, writes %v", err, w.writes())
	}
	w.now = w.now.Add(2 * time.Second)
	if err := w.reconcile(t, "a"); err != nil || len(w.writes()) == 0 {
		t.Errorf("a grace period after: %v, writes %v", err, w.writes())
	}
}

// TestStartup: a node that has never posted a status may be silent for longer.
func TestStartup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	controllertest.Put(t, w.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}})
	for _, c := range []struct {
		after time.Duration
		given bool
	}{{0, false}, {grace + time.Second, false}, {grace, true}} {
		w.now = w.now.Add(c.after)
		if err := w.reconcile(t, "new"); err != nil || len(w.writes()) > 0 != c.given {
			t.Errorf("%s later: %v, writes %v", c.after, err, w.writes())
		}
	}
}

// taintsOf returns what the last write of the node says.
func (w *world) taintsOf(t *testing.T, name string) []string {
	t.Helper()
	for _, call := range slices.Backward(w.fake.Calls()) {
		if call.Name() == "PUT /api/v1/nodes/"+name {
			n := call.Object.(*corev1.Node)
			controllertest.Put(t, w.nodes, n)
			return names(n.Spec.Taints)
		}
	}
	return nil
}

// TestOnlyNodeKeepsItsPods: the taint that drives pods away comes only after a survey, and not when no node is ready.
func TestOnlyNodeKeepsItsPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b")
	unreachable := []string{"node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/unreachable:NoSchedule"}
	fail := func(name string) {
		n, _ := w.nodes.Get(controller.Key{Name: name})
		n = n.DeepCopy()
		markUnknown(n, w.now)
		controllertest.Put(t, w.nodes, n)
	}
	look := func() {
		if _, err := w.survey(t.Context(), struct{}{}); err != nil {
			t.Fatal(err)
		}
		if err := w.reconcile(t, "a", "b"); err != nil {
			t.Fatal(err)
		}
	}
	fail("a")
	if err := w.reconcile(t, "a"); err != nil || !slices.Equal(w.taintsOf(t, "a"), unreachable[1:]) {
		t.Errorf("before the survey: %v, %v", err, w.taintsOf(t, "a"))
	}
	look()
	if got := w.taintsOf(t, "a"); !slices.Equal(got, unreachable) {
		t.Errorf("after the survey: %v", got)
	}
	fail("b")
	look()
	if a, b := w.taintsOf(t, "a"), w.taintsOf(t, "b"); !slices.Equal(a, unreachable[1:]) ||
		!slices.Equal(b, unreachable[1:]) {
		t.Errorf("no node is ready: %v and %v", a, b)
	}
}
