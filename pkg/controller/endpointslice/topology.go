package endpointslice

import (
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/endpointslice/topologycache"

	"bonsai/pkg/controller"
)

// topology hints at zones for Services in topology mode Auto: the endpoints are shared out by the CPUs that the nodes
// of each zone have, or not at all where that would overload some of them
// (https://kubernetes.io/docs/concepts/services-networking/topology-aware-routing/).
//
// The workers share it, because the shares of zones depend on all Services in mode Auto. mu is held while the hints of
// one Service are computed; nothing waits under it.
type topology struct {
	mu    sync.Mutex
	zones *topologycache.TopologyCache
	// services are those in mode Auto.
	services map[controller.Key]bool
	// stale is set while nodes have changed that zones was not told of. All nodes are looked at together, so that a
	// thousand nodes that come at once are not looked at a thousand times.
	stale bool
}

func newTopology() *topology {
	return &topology{zones: topologycache.NewTopologyCache(), services: map[controller.Key]bool{}, stale: true}
}

// modeAuto reports whether a Service asks for hints by topology. The annotation wins over spec.trafficDistribution, and
// its predecessor, from before v1.27, over it.
func modeAuto(svc *corev1.Service) bool {
	mode, ok := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	if !ok {
		mode = svc.Annotations[corev1.AnnotationTopologyMode]
	}
	return mode == "Auto" || mode == "auto"
}

// nodeChanged reports whether a change of a node may change the hints.
//
// CPU counts because zones share endpoints by it, control-plane nodes because they do not take part.
func nodeChanged(old, n *corev1.Node) bool {
	ready := func(n *corev1.Node) bool {
		c := controller.NodeCondition(n, corev1.NodeReady)
		return c != nil && c.Status == corev1.ConditionTrue
	}
	controlPlane := func(n *corev1.Node) bool { _, ok := n.Labels["node-role.kubernetes.io/control-plane"]; return ok }
	return old.Labels[corev1.LabelTopologyZone] != n.Labels[corev1.LabelTopologyZone] || ready(old) != ready(n) ||
		controlPlane(old) != controlPlane(n) || !old.Status.Allocatable.Cpu().Equal(*n.Status.Allocatable.Cpu())
}

// invalidate says that nodes changed. Handlers of the nodes' events call it.
func (t *topology) invalidate() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stale = true
}

// concerned returns the Services whose hints do not fit the nodes any more, or that could not be given any before.
//
// It runs under allNodes, on one worker at a time.
func (t *topology) concerned(nodes func() []*corev1.Node) []controller.Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.services) == 0 {
		return nil
	}
	t.refresh(nodes)
	overloaded := t.zones.GetOverloadedServices()
	slices.Sort(overloaded)
	var out []controller.Key
	for key := range t.services {
		_, found := slices.BinarySearch(overloaded, key.String())
		if found || !t.zones.HasPopulatedHints(key.String()) {
			out = append(out, key)
		}
	}
	return out
}

// refresh tells zones of the nodes if they changed; the caller holds mu.
func (t *topology) refresh(nodes func() []*corev1.Node) {
	if t.stale {
		// Reset before the nodes are read: a change in between sets it again.
		t.stale = false
		t.zones.SetNodes(logr.Discard(), nodes())
	}
}

// hint adds hints to what is to be written of a Service's slices of one family, and to be written what needs other
// hints only. The events say what changed, or why there are none.
//
// It runs after all slices of the family are packed, because the shares are of all endpoints together.
func (t *topology) hint(key controller.Key, family discoveryv1.AddressType, p *changes,
	nodes func() []*corev1.Node) []*topologycache.EventBuilder {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refresh(nodes)
	t.services[key] = true
	var events []*topologycache.EventBuilder
	p.create, p.update, events = t.zones.AddHints(logr.Discard(), &topologycache.SliceInfo{
		ServiceKey: key.String(), AddressType: family, ToCreate: p.create, ToUpdate: p.update, Unchanged: p.same,
	})
	return events
}

// forget drops a Service that is gone or not in mode Auto, and reports whether it had hints.
func (t *topology) forget(key controller.Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.services[key] {
		return false
	}
	had := t.zones.HasPopulatedHints(key.String())
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		t.zones.RemoveHints(key.String(), family)
	}
	delete(t.services, key)
	return had
}
