package disruption

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/apiclient/served"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

const statusOf = "PUT /apis/policy/v1/namespaces/ns/poddisruptionbudgets/b/status"

// newController returns a controller on f, which knows the kinds of the group example.com: Foo, which has a scale, and
// Bar.
func newController(t *testing.T, f *controllertest.Fake) *Controller {
	t.Helper()
	c, err := New(f.Deps(t, now))
	if err != nil {
		t.Fatal(err)
	}
	kinds := served.NewCatalog(
		served.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1",
			Resource: "foos"}, Kind: "Foo", Subresources: []string{"status", "scale"}},
		served.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1",
			Resource: "bars"}, Kind: "Bar", Subresources: []string{"status"}},
		served.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1",
			Resource: "replicasets"}, Kind: "ReplicaSet", Subresources: []string{"scale"}},
	)
	c.scales.kinds = served.NewFinder(func(context.Context) (*served.Catalog, error) { return kinds, nil }, c.Now)
	return c
}

func ref(apiVersion, kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{
		{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(name), Controller: new(true)}}
}

func (c *Controller) events() (out []string) {
	for {
		select {
		case e := <-c.Events.(*record.FakeRecorder).Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

// TestReconcile: whose pods are counted, and what is said where they cannot be.
func TestReconcile(t *testing.T) {
	t.Parallel()
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "x")
	owned := func(name string, refs []metav1.OwnerReference) *corev1.Pod {
		p := made(name, "", true)
		p.OwnerReferences = refs
		return p
	}
	for name, c := range map[string]struct {
		budget   *policyv1.PodDisruptionBudget
		pods     []*corev1.Pod
		answer   error
		expected int32
		failed   string // the condition's message
		event    string
		again    bool
	}{
		"no pods": {budget: budget("1", ""), event: "Normal NoPods No matching pods found"},
		"no selector": {budget: func() *policyv1.PodDisruptionBudget {
			b := budget("1", "")
			b.Spec.Selector = nil
			return b
		}(), pods: []*corev1.Pod{made("p", "", true)}, event: "Normal NoPods No matching pods found"},
		"all pods": {budget: func() *policyv1.PodDisruptionBudget {
			b := budget("1", "")
			b.Spec.Selector = &metav1.LabelSelector{}
			return b
		}(), pods: []*corev1.Pod{made("p", "", true)}, expected: 1},
		"bare pods, a number": {budget: budget("1", ""), pods: []*corev1.Pod{made("p", "", true), made("q", "", true)},
			expected: 2},
		"bare pods, a share": {budget: budget("50%", ""), pods: []*corev1.Pod{made("p", "", true)},
			event: `Warning UnmanagedPods Pods selected by this PodDisruptionBudget (selector: &LabelSelector{MatchLabels:map[string]string{app: x,},MatchExpressions:[]LabelSelectorRequirement{},}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.`},
		"a Deployment": {budget: budget("", "1"),
			pods: []*corev1.Pod{owned("p", ref("apps/v1", "ReplicaSet", "old")),
				owned("q", ref("apps/v1", "ReplicaSet", "new"))}, expected: 4},
		"a Deployment and a ReplicaSet of somebody else": {budget: budget("", "1"),
			pods: []*corev1.Pod{owned("p", ref("apps/v1", "ReplicaSet", "old")),
				owned("q", ref("apps/v1", "ReplicaSet", "rollout"))}, expected: 9},
		"a StatefulSet": {budget: budget("", "1"),
			pods: []*corev1.Pod{owned("p", ref("apps/v1", "StatefulSet", "set"))}, expected: 3},
		"a ReplicationController": {budget: budget("", "1"),
			pods: []*corev1.Pod{owned("p", ref("v1", "ReplicationController", "rc"))}, expected: 1},
		"a custom kind": {budget: budget("", "1"),
			pods: []*corev1.Pod{owned("p", ref("example.com/v1", "Foo", "foo"))}, expected: 8},
		"a custom kind without scale": {budget: budget("", "1"),
			pods:   []*corev1.Pod{owned("p", ref("example.com/v1", "Bar", "bar"))},
			failed: "bars.example.com does not implement the scale subresource", again: true},
		"a kind that nobody serves": {budget: budget("", "1"),
			pods:   []*corev1.Pod{owned("p", ref("example.com/v2", "Foo", "foo"))},
			failed: `no matches for kind "Foo" in version "example.com/v2"`, again: true},
		"another one of the same name": {budget: budget("", "1"),
			pods:   []*corev1.Pod{owned("p", ref("example.com/v1", "Foo", "other"))},
			failed: `found no controllers for pod "p"`, again: true},
		"a controller that is gone": {budget: budget("", "1"),
			pods: []*corev1.Pod{owned("p", ref("apps/v1", "ReplicaSet", "gone"))}, answer: notFound,
			failed: `found no controllers for pod "p"`, again: true},
		"nothing asked for a number": {budget: budget("1", ""),
			pods: []*corev1.Pod{owned("p", ref("example.com/v2", "Foo", "foo"))}, expected: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
				if call.Name() == statusOf {
					return call.Object, nil
				}
				return &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{UID: "foo"},
					Spec: autoscalingv1.ScaleSpec{Replicas: 8}}, c.answer
			}}
			ctl := newController(t, fake)
			controllertest.Put(t, ctl.budgets, c.budget)
			controllertest.Put(t, ctl.pods, c.pods...)
			controllertest.Put(t, ctl.scales.deployments,
				&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "d"},
					Spec: appsv1.DeploymentSpec{Replicas: new(int32(4))}})
			for name, by := range map[string][]metav1.OwnerReference{"old": ref("apps/v1", "Deployment", "d"),
				"new": ref("apps/v1", "Deployment", "d"), "rollout": ref("example.com/v1", "Deployment", "d")} {
				controllertest.Put(t, ctl.scales.replicas,
					&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
						OwnerReferences: by}, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(5))}})
			}
			controllertest.Put(t, ctl.scales.sets,
				&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set"},
					Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}})
			controllertest.Put(t, ctl.scales.controllers,
				&corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "rc", UID: "rc"}})
			res, err := ctl.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "b"})
			if err != nil || res.Backoff != c.again {
				t.Errorf("%+v, %v", res, err)
			}
			calls := fake.Calls()
			last := calls[len(calls)-1]
			if last.Name() != statusOf {
				t.Fatalf("calls %v", fake.Names())
			}
			s := last.Object.(*policyv1.PodDisruptionBudget).Status
			if s.ExpectedPods != c.expected || s.Conditions[0].Message != c.failed {
				t.Errorf("%+v", s)
			}
			want := c.event
			if c.failed != "" {
				want = "Warning CalculateExpectedPodCountFailed Failed to calculate the number of expected pods: " +
					c.failed
			}
			if got := strings.Join(ctl.events(), "\n"); got != want {
				t.Errorf("events %q, want %q", got, want)
			}
		})
	}
}

// TestWrites: a status that holds already is not written again, and one that somebody else wrote since is not
// overwritten.
func TestWrites(t *testing.T) {
	t.Parallel()
	var conflict error
	fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
		return call.Object, conflict
	}}
	ctl, key := newController(t, fake), controller.Key{Namespace: "ns", Name: "b"}
	b := budget("1", "")
	b.ResourceVersion = "5"
	b.Status.DisruptedPods = map[string]metav1.Time{"p": metav1.NewTime(now.Add(-deletionTimeout))}
	controllertest.Put(t, ctl.budgets, b)
	controllertest.Put(t, ctl.pods, made("p", "", true), made("q", "", true))
	conflict = apierrors.NewConflict(schema.GroupResource{Resource: "poddisruptionbudgets"}, "b", nil)
	if _, err := ctl.Reconcile(t.Context(), key); !apierrors.IsConflict(err) {
		t.Errorf("somebody else wrote: %v", err)
	}
	if e := ctl.events(); !slices.Equal(e,
		[]string{"Warning NotDeleted Pod was expected by PDB ns/b to be deleted but it wasn't"}) {
		t.Errorf("events %v", e)
	}
	written := fake.Calls()[0].Object.(*policyv1.PodDisruptionBudget)
	if written.ResourceVersion != "5" || written.Status.DisruptionsAllowed != 1 {
		t.Errorf("written %+v", written)
	}
	conflict = nil
	controllertest.Put(t, ctl.budgets, written)
	if _, err := ctl.Reconcile(t.Context(), key); err != nil || len(fake.Calls()) != 1 {
		t.Errorf("%v, calls %v", err, fake.Names())
	}
	if _, err := ctl.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "gone"}); err != nil {
		t.Error(err)
	}
}

// TestStaleMark: a pod that was marked and then not deleted is told so after a while, unless it was marked again
// meanwhile.
func TestStaleMark(t *testing.T) {
	t.Parallel()
	fake := &controllertest.Fake{Answer: func(controllertest.Call) (runtime.Object, error) {
		return &corev1.Pod{}, nil
	}}
	ctl, key := newController(t, fake), controller.Key{Namespace: "ns", Name: "p"}
	p := made("p", "", true)
	p.ResourceVersion, p.Generation = "7", 3
	mark := func(ago time.Duration) {
		p := p.DeepCopy()
		p.Status.Conditions = append(p.Status.Conditions,
			corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(now.Add(-ago))})
		controllertest.Put(t, ctl.pods, p)
	}
	mark(30 * time.Second)
	if res, err := ctl.reconcilePod(t.Context(), key); err != nil || res.RequeueAfter != 90*time.Second ||
		len(fake.Calls()) > 0 {
		t.Errorf("%+v, %v, %v", res, err, fake.Names())
	}
	mark(markTimeout)
	if _, err := ctl.reconcilePod(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if got := fake.Names(); !slices.Equal(got, []string{"PATCH /api/v1/namespaces/ns/pods/p/status"}) {
		t.Fatal(got)
	}
	var patch map[string]any
	if err := json.Unmarshal(fake.Calls()[0].Body, &patch); err != nil {
		t.Fatal(err)
	}
	want := `map[metadata:map[resourceVersion:7 uid:p] status:map[conditions:[map[lastTransitionTime:1970-01-12T13:46:40Z message:<nil> observedGeneration:3 reason:<nil> status:False type:DisruptionTarget]]]]`
	if got := fmt.Sprint(patch); got != want {
		t.Errorf("patch %s", got)
	}
}
