package service

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// provider notes its calls, and fails while fail is set.
type provider struct {
	calls []string
	fail  error
}

func (p *provider) note(call string, nodes []*corev1.Node) error {
	p.calls = append(p.calls, strings.TrimSpace(call+" "+strings.Join(names(nodes), " ")))
	return p.fail
}

func (p *provider) Ensure(_ context.Context, _ *corev1.Service, nodes []*corev1.Node) (*corev1.LoadBalancerStatus,
	error) {
	return &corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "10.0.0.9"}}}, p.note("ensure", nodes)
}

func (p *provider) Update(_ context.Context, _ *corev1.Service, nodes []*corev1.Node) error {
	return p.note("update", nodes)
}

func (p *provider) Release(context.Context, *corev1.Service) error { return p.note("release", nil) }

func balancedService() *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "u",
		Finalizers: []string{"a/b"}}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
}

func readyNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}

// world is a controller with one service, whose informers hold what was put there.
type world struct {
	*Controller
	t        *testing.T
	fake     *controllertest.Fake
	provider *provider
	events   *record.FakeRecorder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, fake: &controllertest.Fake{Answer: func(controllertest.Call) (runtime.Object, error) {
		return &corev1.Service{}, nil
	}}, provider: &provider{}}
	d := w.fake.Deps(t, time.Unix(1000, 0))
	w.events = d.Events.(*record.FakeRecorder)
	var err error
	if w.Controller, err = New(d, func(func() []*corev1.Service) (Provider, error) {
		return w.provider, nil
	}); err != nil {
		t.Fatal(err)
	}
	return w
}

// does reconciles s and compares the provider's calls, the writes and the events that come of it.
func (w *world) does(what string, s *corev1.Service, fails bool, calls, writes, events string) {
	w.t.Helper()
	controllertest.Put(w.t, w.services, s)
	w.provider.calls = nil
	before := len(w.fake.Calls())
	_, err := w.Reconcile(w.t.Context(), controller.KeyOf(s))
	var wrote, said []string
	for _, c := range w.fake.Calls()[before:] {
		if c.Name() != "PATCH /api/v1/namespaces/ns/services/s/status" {
			w.t.Errorf("%s: %s", what, c.Name())
		}
		wrote = append(wrote, string(c.Body))
	}
	for len(w.events.Events) > 0 {
		said = append(said, strings.Fields(<-w.events.Events)[1])
	}
	if (err != nil) != fails || strings.Join(w.provider.calls, ", ") != calls || strings.Join(wrote, " ") != writes ||
		strings.Join(said, " ") != events {
		w.t.Errorf("%s: %v\ncalls %v\nwrites %v\nevents %v", what, err, w.provider.calls, wrote, said)
	}
}

func TestLife(t *testing.T) {
	t.Parallel()
	const finalizer, status = `{"metadata":{"uid":"u","finalizers":["service.kubernetes.io/load-balancer-cleanup"]}}`,
		`{"metadata":{"uid":"u"},"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.9"}]}}}`
	const cleared, removed = `{"metadata":{"uid":"u"},"status":{"loadBalancer":{"ingress":null}}}`,
		`{"metadata":{"uid":"u","$deleteFromPrimitiveList/finalizers":["service.kubernetes.io/load-balancer-cleanup"]}}`
	w := newWorld(t)
	controllertest.Put(t, w.nodes, readyNode("a"))
	s := balancedService()
	w.provider.fail = errors.New("no")
	w.does("a failure", s, true, "ensure a", finalizer, "EnsuringLoadBalancer SyncLoadBalancerFailed")
	w.provider.fail = nil
	w.does("new", s, false, "ensure a", finalizer+" "+status, "EnsuringLoadBalancer EnsuredLoadBalancer")
	s = s.DeepCopy()
	s.Finalizers = append(s.Finalizers, Finalizer)
	w.does("before its status is seen", s, false, "", "", "")
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.0.0.9"}}
	w.does("as it shall be", s, false, "", "", "")
	s = s.DeepCopy()
	s.Annotations = map[string]string{"x": "y"}
	w.does("changed", s, false, "ensure a", "", "EnsuringLoadBalancer EnsuredLoadBalancer")
	controllertest.Put(t, w.nodes, readyNode("b"))
	w.provider.fail = errors.New("no")
	w.does("another node, and a failure", s, true, "update a b", "", "UpdateLoadBalancerFailed")
	w.provider.fail = nil
	w.does("another node", s, false, "update a b", "", "UpdatedLoadBalancer")
	w.does("with all its nodes", s, false, "", "", "")
	s = s.DeepCopy()
	s.Spec.Type = corev1.ServiceTypeClusterIP
	w.provider.fail = errors.New("no")
	w.does("of another type, and a failure", s, true, "release", "", "DeletingLoadBalancer SyncLoadBalancerFailed")
	w.provider.fail = nil
	w.does("of another type", s, false, "release", cleared+" "+removed, "DeletingLoadBalancer DeletedLoadBalancer")
	s = s.DeepCopy()
	s.Finalizers = nil
	w.does("of another type, and done", s, false, "", "", "")
	s = balancedService()
	s.Finalizers, s.DeletionTimestamp = append(s.Finalizers, Finalizer), &metav1.Time{Time: time.Unix(1, 0)}
	w.does("being deleted", s, false, "release", removed, "DeletingLoadBalancer DeletedLoadBalancer")
}

func TestNotOurs(t *testing.T) {
	t.Parallel()
	class := "example.com/other"
	for name, change := range map[string]func(*corev1.Service){
		"another class":        func(s *corev1.Service) { s.Spec.LoadBalancerClass = &class },
		"no balancer":          func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort },
		"deleted before it is": func(s *corev1.Service) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
	} {
		s := balancedService()
		change(s)
		newWorld(t).does(name, s, false, "", "", "")
	}
}

func TestNodes(t *testing.T) {
	t.Parallel()
	excluded, leaving, tainted, unready := readyNode("excluded"), readyNode("leaving"), readyNode("tainted"),
		readyNode("unready")
	excluded.Labels = map[string]string{"node.kubernetes.io/exclude-from-external-load-balancers": ""}
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	tainted.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}}
	unready.Status.Conditions[0].Status = corev1.ConditionUnknown
	if got := names(balanced(
		[]*corev1.Node{readyNode("b"), excluded, leaving, tainted, unready, readyNode("a")})); !slices.Equal(got,
		[]string{"a", "b"}) {
		t.Errorf("%v", got)
	}
}
