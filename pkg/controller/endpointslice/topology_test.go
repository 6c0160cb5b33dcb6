package endpointslice

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// zonedNode is a ready node with that many CPUs.
func zonedNode(name, zone, cpus string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus)},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// zoned is a controller whose written slices come back into its cache at once, with the Service ns/web in mode Auto,
// nodes, and pods on them, by the nodes' names.
type zoned struct {
	*Controller
	*controllertest.Fake
	events *record.FakeRecorder
}

func zonedStage(t *testing.T, nodes []*corev1.Node, pods ...string) *zoned {
	t.Helper()
	z, version := &zoned{}, 9
	z.Fake = &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
		s, ok := call.Object.(*discoveryv1.EndpointSlice)
		if !ok {
			return call.Object, nil
		}
		if version++; s.Name == "" {
			s.Name = fmt.Sprint("web-", version)
		}
		s.ResourceVersion = fmt.Sprint(version)
		controllertest.Put(t, z.slices, s)
		return s, nil
	}}
	deps := z.Fake.Deps(t, time.Unix(1_000_000, 0))
	z.events = deps.Events.(*record.FakeRecorder)
	var err error
	if z.Controller, err = New(deps, 100); err != nil {
		t.Fatal(err)
	}
	z.change(t, func(svc *corev1.Service) {
		svc.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"}
	})
	controllertest.Put(t, z.nodes, nodes...)
	for i, node := range pods {
		p := readyPod(i)
		p.Labels, p.Spec.NodeName = map[string]string{"app": "web"}, node
		controllertest.Put(t, z.pods, p)
	}
	return z
}

// change puts the Service into the cache.
func (z *zoned) change(t *testing.T, change func(*corev1.Service)) {
	t.Helper()
	svc := service()
	svc.Spec.Selector = map[string]string{"app": "web"}
	change(svc)
	controllertest.Put(t, z.services, svc)
}

// reconciled reconciles the Service, and once more to see that there was nothing left to do. It returns how many
// endpoints are hinted at each zone, "" for none, and the events.
func (z *zoned) reconciled(t *testing.T) (hints map[string]int, events []string) {
	t.Helper()
	reconcile(t, z.Controller)
	for len(z.events.Events) > 0 {
		events = append(events, <-z.events.Events)
	}
	before := len(z.Calls())
	reconcile(t, z.Controller)
	if more := z.Names()[before:]; len(more) > 0 {
		t.Errorf("reconciled once more: %v", more)
	}
	for len(z.events.Events) > 0 {
		<-z.events.Events
	}
	hints = map[string]int{}
	for _, s := range z.slices.List() {
		for _, e := range s.Endpoints {
			switch {
			case e.Hints == nil:
				hints[""]++
			case len(e.Hints.ForZones) == 1 && e.Hints.ForNodes == nil:
				hints[e.Hints.ForZones[0].Name]++
			default:
				t.Errorf("hints %+v", e.Hints)
			}
		}
	}
	return hints, events
}

func text(hints map[string]int) string {
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(hints), "map["), "]")
}

// TestTopologyModeAuto covers what is documented of the hints and of when there are none:
// https://kubernetes.io/docs/concepts/services-networking/topology-aware-routing/.
func TestTopologyModeAuto(t *testing.T) {
	t.Parallel()
	a, b := zonedNode("a", "a", "2"), zonedNode("b", "b", "2")
	nodes := func(list ...*corev1.Node) []*corev1.Node { return list }
	big, unzoned, sick := zonedNode("b", "b", "6"), zonedNode("b", "", "2"), zonedNode("b", "b", "2")
	sick.Status.Conditions = nil
	control := zonedNode("c", "c", "8")
	control.Labels["node-role.kubernetes.io/control-plane"] = ""
	for _, c := range []struct {
		name  string
		nodes []*corev1.Node
		pods  []string
		want  string
		event string
	}{
		{"as the CPUs", nodes(a, b), []string{"a", "a", "b", "b"}, "a:2 b:2", "Normal TopologyAwareHintsEnabled"},
		{"a zone lends to another", nodes(a, b), []string{"a", "a", "a", "b"}, "a:2 b:2",
			"Normal TopologyAwareHintsEnabled"},
		{"zones of different sizes", nodes(a, big), []string{"a", "a", "b", "b", "b", "b", "b", "b"}, "a:2 b:6",
			"Normal TopologyAwareHintsEnabled"},
		{"fewer endpoints than zones", nodes(a, b), []string{"a"}, ":1",
			"Warning TopologyAwareHintsDisabled Insufficient number of endpoints"},
		{"shares too uneven", nodes(a, big), []string{"a", "b"}, ":2", "Warning TopologyAwareHintsDisabled"},
		{"one zone only", nodes(a), []string{"a", "a"}, ":2",
			"Warning TopologyAwareHintsDisabled Insufficient Node information"},
		{"a node without a zone", nodes(a, unzoned), []string{"a", "b"}, ":2",
			"Warning TopologyAwareHintsDisabled Insufficient Node information"},
		{"nodes that are not ready", nodes(a, sick), []string{"a", "a", "b"}, ":3",
			"Warning TopologyAwareHintsDisabled Insufficient Node information"},
		{"control planes take no traffic", nodes(a, b, control), []string{"a", "a", "b", "b"}, "a:2 b:2",
			"Normal TopologyAwareHintsEnabled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hints, events := zonedStage(t, c.nodes, c.pods...).reconciled(t)
			if got := text(hints); got != c.want {
				t.Errorf("hints %q, want %q", got, c.want)
			}
			if len(events) != 1 || !strings.HasPrefix(events[0], c.event) {
				t.Errorf("events %q, want %q", events, c.event)
			}
		})
	}
}

// TestTopologyModeChanges: slices that are right except for their hints are written when the Service's mode changes.
func TestTopologyModeChanges(t *testing.T) {
	t.Parallel()
	z := zonedStage(t, []*corev1.Node{zonedNode("a", "a", "2"), zonedNode("b", "b", "2")}, "a", "a", "a", "b")
	for _, step := range []struct {
		name   string
		change func(*corev1.Service)
		want   string
		events []string
	}{
		{"none", func(*corev1.Service) {}, ":4", nil},
		{"Auto", func(svc *corev1.Service) {
			svc.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"}
		}, "a:2 b:2",
			[]string{"Normal TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4"}},
		{"distribution", func(svc *corev1.Service) { svc.Spec.TrafficDistribution = new("PreferSameZone") }, "a:3 b:1",
			[]string{"Warning TopologyAwareHintsDisabled Topology Aware Hints has been disabled"}},
		{"Auto wins over the distribution", func(svc *corev1.Service) {
			svc.Annotations, svc.Spec.TrafficDistribution = map[string]string{corev1.AnnotationTopologyMode: "auto"},
				new("PreferSameZone")
		}, "a:2 b:2", []string{"Normal TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4"}},
		{"disabled", func(svc *corev1.Service) {
			svc.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto",
				corev1.DeprecatedAnnotationTopologyAwareHints: "Disabled"}
		}, ":4", []string{"Warning TopologyAwareHintsDisabled Topology Aware Hints has been disabled"}},
	} {
		z.change(t, step.change)
		hints, events := z.reconciled(t)
		if got := text(hints); got != step.want || !slices.Equal(events, step.events) {
			t.Errorf("%s: hints %q, want %q; events %q, want %q", step.name, got, step.want, events, step.events)
		}
	}
}

// TestTopologyFollowsNodes: Services whose shares do not fit the nodes any more are looked at again, others are left
// alone.
func TestTopologyFollowsNodes(t *testing.T) {
	t.Parallel()
	z := zonedStage(t, []*corev1.Node{zonedNode("a", "a", "2")}, "a", "a", "b", "b")
	concerned := func() []controller.Key {
		z.topology.invalidate()
		return z.topology.concerned(z.nodes.List)
	}
	if got := concerned(); got != nil {
		t.Errorf("before any Service: %v", got)
	}
	controllertest.Put(t, z.nodes, zonedNode("b", "", "2"))
	if hints, _ := z.reconciled(t); hints[""] != 4 {
		t.Errorf("a node without a zone: %v", hints)
	}
	for _, step := range []struct {
		cpus string
		wake bool
		want string
	}{
		{"2", true, "a:2 b:2"},
		{"2200m", false, "a:2 b:2"},
		{"6", true, "a:1 b:3"},
	} {
		old, _ := z.nodes.Get(controller.Key{Name: "b"})
		node := zonedNode("b", "b", step.cpus)
		if !nodeChanged(old, node) || nodeChanged(node, node.DeepCopy()) {
			t.Error("the change goes unnoticed, or none does not")
		}
		controllertest.Put(t, z.nodes, node)
		if got := concerned(); (len(got) == 1) != step.wake {
			t.Errorf("%s CPUs: concerned are %v", step.cpus, got)
		}
		if hints, _ := z.reconciled(t); text(hints) != step.want {
			t.Errorf("%s CPUs: hints %v, want %q", step.cpus, hints, step.want)
		}
	}
	if err := z.services.Raw().GetIndexer().Delete(service()); err != nil {
		t.Fatal(err)
	}
	reconcile(t, z.Controller)
	if got := concerned(); got != nil {
		t.Errorf("after the last Service: %v", got)
	}
}
