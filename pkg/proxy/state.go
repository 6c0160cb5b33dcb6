package proxy

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State collects the objects of the cluster as a node's proxy sees them, and knows what changed since the last Take. It
// is safe for concurrent use.
type State struct {
	node string
	// Queued is called, under the state's lock, when there is something to Take. It may be set before anything is fed.
	Queued func()
	// Arrivals is set if Updates are to have Arrived. It may be set before anything is fed.
	Arrivals bool
	wake     chan struct{} // has room for one: Take gives everything that changed, however often

	// mu guards everything below: the API's watches change it, one goroutine per kind, while the loop takes. Nothing is
	// written to the kernel under it.
	mu       sync.Mutex
	services map[Name]serviceFacts
	outside  *outside
	// serviceCIDRs are the ranges of cluster IPs, by object. Not every API server has such objects.
	serviceCIDRs map[string][]netip.Prefix
	slices       map[Name]map[Name]sliceFacts // by service, then by slice
	owners       map[Name]Name                // slice to service
	nodes        map[string]nodeFacts
	dirty        map[Name]bool
	listed       map[string]bool
	// changes counts, for services and for slices, what changed, and the part that the next Take will report.
	changes [2]changes
	// triggers are those of the slices that the next Take will report, the earliest of each.
	triggers map[Name]trigger
	// arrivals are those that the next Take will report.
	arrivals []Arrival
}

// The indices of changes.
const (
	ofServices = iota
	ofSlices
)

// changes are counted for the proxy's metrics.
type changes struct {
	total   int
	pending map[Name]bool
}

func (c *changes) note(name Name) {
	c.total++
	c.pending[name] = true
}

// trigger is a change of endpoints in a family: when it happened in the cluster.
type trigger struct {
	Six bool
	At  time.Time
}

// NewState returns an empty state for the node called name.
func NewState(name string) *State {
	return &State{
		node: name, wake: make(chan struct{}, 1),
		services: map[Name]serviceFacts{}, outside: newOutside(), serviceCIDRs: map[string][]netip.Prefix{},
		slices: map[Name]map[Name]sliceFacts{}, owners: map[Name]Name{}, nodes: map[string]nodeFacts{},
		dirty: map[Name]bool{}, listed: map[string]bool{},
		changes: [2]changes{{pending: map[Name]bool{}}, {pending: map[Name]bool{}}}, triggers: map[Name]trigger{},
		Queued: func() {},
	}
}

// Update is what changed, for the backends.
type Update struct {
	// Services has the new Ports of every service that changed; nil for one that is gone.
	Services map[Name][]Port
	// Health has the local endpoint counts of changed services with a health check port.
	Health map[Name]Health
	// Addresses are the node's own.
	Addresses []netip.Addr
	// ServiceCIDRs are cluster IPs whether a service has them yet or not, in order.
	ServiceCIDRs []netip.Prefix
	// Triggers are the changes in the cluster that the endpoints among Services come from. The first list has none.
	Triggers []trigger
	// Arrived are the pods' endpoints that became ready, if State.Arrivals is set.
	Arrived []Arrival
}

// Health is what a load balancer asks a node about a service; Port 0: nothing is served for it.
type Health struct {
	Port  uint16
	Local int
}

// Changed fires after a change.
func (s *State) Changed() <-chan struct{} { return s.wake }

// Ready reports whether services, slices and nodes were listed: before that, an Update would remove the rules of what
// is only not known yet.
func (s *State) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed["services"] && s.listed["slices"] && s.listed["nodes"]
}

// Leaving reports whether the node is being deleted.
func (s *State) Leaving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[s.node].Leaving
}

// Take returns what changed since the last call and forgets it. Decisions (portsOf) are made here, once for all changes
// that came meanwhile.
func (s *State) Take() Update {
	s.mu.Lock()
	defer s.mu.Unlock()
	self := s.nodes[s.node]
	u := Update{Services: map[Name][]Port{}, Health: map[Name]Health{}, Addresses: self.Addresses,
		ServiceCIDRs: s.outside.ranges}
	for name := range s.dirty {
		svc, ok := s.services[name]
		if !ok {
			u.Services[name], u.Health[name] = nil, Health{}
			continue
		}
		svc.ExternalIPs, svc.LoadBalancerIPs = s.outside.accepted(svc.ExternalIPs),
			s.outside.accepted(svc.LoadBalancerIPs)
		all := slices.SortedFunc(maps.Values(s.slices[name]), func(a, b sliceFacts) int {
			return cmp.Compare(a.Key.Name, b.Key.Name)
		})
		u.Services[name] = portsOf(svc, all, location{Name: s.node, Zone: self.Zone})
		u.Health[name] = Health{Port: svc.HealthCheckPort, Local: localEndpoints(all, s.node)}
	}
	u.Triggers = slices.Collect(maps.Values(s.triggers))
	u.Arrived, s.arrivals = s.arrivals, nil
	clear(s.dirty)
	clear(s.triggers)
	for i := range s.changes {
		clear(s.changes[i].pending)
	}
	return u
}

// ServiceChanges returns how many services came, changed or went, and how many of them the next Take will report.
func (s *State) ServiceChanges() (total, pending int) { return s.changesOf(ofServices) }

// EndpointChanges is ServiceChanges of endpoint slices.
func (s *State) EndpointChanges() (total, pending int) { return s.changesOf(ofSlices) }

func (s *State) changesOf(kind int) (total, pending int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.changes[kind]
	return c.total, len(c.pending)
}

// Again makes the next Take report services once more. It does not fire Changed: the loop repeats a failed round
// itself.
func (s *State) Again(services iter.Seq[Name]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range services {
		s.dirty[name] = true
	}
}

// localEndpoints counts the ready addresses on a node.
func localEndpoints(all []sliceFacts, node string) int {
	seen := map[netip.Addr]bool{}
	for _, sl := range all {
		for _, e := range sl.Endpoints {
			if e.Ready && e.Node == node {
				seen[e.Addr] = true
			}
		}
	}
	return len(seen)
}

// changedLocked fires Changed. The caller holds mu.
func (s *State) changedLocked() {
	s.Queued()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// touchLocked makes the next Take report a service.
func (s *State) touchLocked(name Name) {
	s.dirty[name] = true
	s.changedLocked()
}

// listedLocked records that a kind is known completely.
func (s *State) listedLocked(kind string) {
	s.listed[kind] = true
	s.changedLocked()
}

// setServiceLocked stores svc. Unchanged facts, as when only an annotation changed, do not fire Changed.
func (s *State) setServiceLocked(svc serviceFacts) {
	old, known := s.services[svc.Name]
	if known && reflect.DeepEqual(old, svc) {
		return
	}
	if known {
		s.concernLocked(s.outside.remove(&old))
	}
	s.services[svc.Name] = svc
	s.changes[ofServices].note(svc.Name)
	s.concernLocked(s.outside.add(&svc))
	s.touchLocked(svc.Name)
}

func (s *State) dropServiceLocked(name Name) {
	if old, ok := s.services[name]; ok {
		delete(s.services, name)
		s.changes[ofServices].note(name)
		s.concernLocked(s.outside.remove(&old))
		s.touchLocked(name)
	}
}

// setServiceCIDRLocked stores the ranges of an object; without ranges the object is gone.
func (s *State) setServiceCIDRLocked(name string, ranges []netip.Prefix) {
	if slices.Equal(s.serviceCIDRs[name], ranges) {
		return
	}
	if s.serviceCIDRs[name] = ranges; len(ranges) == 0 {
		delete(s.serviceCIDRs, name)
	}
	var all []netip.Prefix
	for _, ranges := range s.serviceCIDRs {
		all = append(all, ranges...)
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	s.concernLocked(s.outside.setRanges(slices.Compact(all)))
	s.changedLocked()
}

// Protect keeps services from taking addresses that the node needs, such as those of its API server, and addresses of
// pods, for the life of the State. It is called once, before anything is fed.
func (s *State) Protect(list []netip.Addr, pods []netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outside.pods = pods
	s.concernLocked(s.outside.own(list))
}

// apiServers returns the addresses of API servers in a slice. Only the slice that they write themselves counts: users
// can make others for its Service.
func apiServers(sl sliceFacts) (out []netip.Addr) {
	if sl.Key == (Name{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}) {
		for _, e := range sl.Endpoints {
			out = append(out, e.Addr)
		}
	}
	return out
}

// concernLocked makes the next Take report the services whose outside addresses are decided differently because an
// owner of addresses or a range of cluster IPs came or went.
func (s *State) concernLocked(names []Name) {
	for _, name := range names {
		s.touchLocked(name)
	}
}

// setSliceLocked stores a slice. A slice may move to another service; then the first one loses it.
func (s *State) setSliceLocked(sl sliceFacts) {
	if owner, ok := s.owners[sl.Key]; ok && owner != sl.Service {
		s.dropSliceLocked(sl.Key)
	}
	latest := trigger{sl.Six, sl.Trigger}
	sl.Trigger = time.Time{} // is not kept: a slice that says the same again is no change
	old, ok := s.slices[sl.Service][sl.Key]
	if ok && reflect.DeepEqual(old, sl) {
		return
	}
	s.concernLocked(append(s.outside.own(apiServers(sl)), s.outside.disown(apiServers(old))...))
	s.changes[ofSlices].note(sl.Key)
	if s.slices[sl.Service] == nil {
		s.slices[sl.Service] = map[Name]sliceFacts{}
	}
	s.slices[sl.Service][sl.Key] = sl
	s.owners[sl.Key] = sl.Service
	if _, ok := s.services[sl.Service]; !ok {
		return
	}
	if _, earlier := s.triggers[sl.Key]; !earlier && !latest.At.IsZero() && s.listed["slices"] {
		s.triggers[sl.Key] = latest
	}
	s.touchLocked(sl.Service)
}

func (s *State) dropSliceLocked(key Name) {
	owner, ok := s.owners[key]
	if !ok {
		return
	}
	s.changes[ofSlices].note(key)
	s.concernLocked(s.outside.disown(apiServers(s.slices[owner][key])))
	delete(s.owners, key)
	delete(s.slices[owner], key)
	if len(s.slices[owner]) == 0 {
		delete(s.slices, owner)
	}
	if _, ok := s.services[owner]; ok {
		s.touchLocked(owner)
	}
}

// setNodeLocked stores a node. If this node's zone changes, all services are decided again: hints depend on it.
func (s *State) setNodeLocked(n nodeFacts) {
	old, known := s.nodes[n.Name]
	if known && reflect.DeepEqual(old, n) {
		return
	}
	s.nodes[n.Name] = n
	s.concernLocked(append(s.outside.own(n.All), s.outside.disown(old.All)...))
	if n.Name == s.node && old.Zone != n.Zone {
		for name := range s.services {
			s.dirty[name] = true
		}
	}
	s.changedLocked()
}

func (s *State) dropNodeLocked(name string) {
	if old, ok := s.nodes[name]; ok {
		delete(s.nodes, name)
		s.concernLocked(s.outside.disown(old.All))
		s.changedLocked()
	}
}
