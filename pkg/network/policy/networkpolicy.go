// Package policy decides what NetworkPolicies (networking.k8s.io/v1) mean for a node: which of its pods are isolated,
// and what is allowed to them all the same. It is pure: policies, pods and namespaces go in, a network.PolicyUpdate
// with what changed comes out, which pkg/proxy/nft writes. The rules are those of the API's documentation:
//
//   - A pod that no policy selects is open, in either direction. Policies add up: what one of them allows is allowed.
//   - A connection needs the consent of both ends: the egress of the pod it comes from, the ingress of the one it goes
//     to.
//   - Pods of the host's network are no pods to policies: neither isolated nor selected as peers. Their addresses are
//     the node's.
//   - A rule's selector without a namespace selector is for pods of the policy's own namespace.
//   - A named port is the number that the pod which is connected to gives the name.
//
// Rules of the API: https://kubernetes.io/docs/concepts/services-networking/network-policies/. Selectors are compiled
// to sets of addresses: a pod that comes or goes changes the sets of its groups, and no rule.
package policy

import (
	"maps"
	"net/netip"
	"slices"
	"sync"

	"bonsai/pkg/boundedfrequency"
	"bonsai/pkg/network"
)

// maxMembers bounds what the selectors of all policies select together, each pod counted once for each group that it is
// in. Beyond it pods are left out, so that nothing is allowed to or by them by such a rule. A member takes some 300
// bytes.
const maxMembers = 1 << 20

// State collects the objects of the cluster as the node sees them, and knows what changed since the last Take. Its
// methods may be called from several goroutines.
//
// One goroutine per kind of object changes it, and the goroutine that writes rules takes. Methods whose name ends in
// Locked need mu.
type State struct {
	node string
	// own are the node's ranges of pod addresses, as far as they are known.
	own    func() []netip.Prefix
	room   int           // memberships, at most
	wake   chan struct{} // has room for one: Take gives everything that changed, however often
	needed chan struct{} // closed when the first policy is seen

	// mu guards all below: the API's watches change them, one goroutine per kind, while the loop takes.
	mu         sync.Mutex
	namespaces map[string]*namespace
	pods       map[network.Name]*pod
	local      map[network.Name]*pod
	groups     map[string]*group
	wide       map[*group]bool // of those the ones that select namespaces
	named      map[network.NamedPort]int
	isolations map[string]*isolation
	members    int // of all groups
	listed     map[string]bool

	changedPods       map[network.Name]bool
	changedPolicies   map[network.Name]bool
	changedGroups     map[string]bool
	changedNamed      map[network.NamedPort]bool
	changedIsolations map[string]bool
}

var _ boundedfrequency.State = (*State)(nil)

// isolation is an Isolation in use; pods counts the pods that have it.
type isolation struct {
	network.Isolation
	pods int
}

// NewState returns an empty state for the node called name, whose pods have addresses of own.
func NewState(name string, own func() []netip.Prefix) *State {
	return &State{
		node: name, own: own, room: maxMembers, wake: make(chan struct{}, 1), needed: make(chan struct{}),
		namespaces: map[string]*namespace{}, pods: map[network.Name]*pod{}, local: map[network.Name]*pod{},
		groups: map[string]*group{}, wide: map[*group]bool{}, named: map[network.NamedPort]int{},
		isolations: map[string]*isolation{}, listed: map[string]bool{},
		changedPods: map[network.Name]bool{}, changedPolicies: map[network.Name]bool{},
		changedGroups: map[string]bool{},
		changedNamed:  map[network.NamedPort]bool{}, changedIsolations: map[string]bool{},
	}
}

// Changed implements boundedfrequency.State.
func (s *State) Changed() <-chan struct{} { return s.wake }

// Needed is closed once there was a policy: before that nothing need be known of pods and namespaces.
func (s *State) Needed() <-chan struct{} { return s.needed }

// Ready implements boundedfrequency.State: all policies are known, and, if there was one, all pods and namespaces.
//
// Before that nothing is written: rules from half of the policies would isolate too little, from half of the pods would
// let too few through.
func (s *State) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.needed:
		return s.listed["policies"] && s.listed["pods"] && s.listed["namespaces"]
	default:
		return s.listed["policies"]
	}
}

// Take returns what changed since the last call.
//
// It describes the present state of everything that changed, not the changes: an object that changed twice is in it
// once.
func (s *State) Take() network.PolicyUpdate {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := network.PolicyUpdate{
		Groups: map[string]bool{}, Named: map[network.NamedPort]bool{}, Policies: map[network.Name]*network.Policy{},
		Isolations: map[string]*network.Isolation{}, Pods: map[network.Name]*network.PolicyPod{}, Own: s.own(),
	}
	// Before the changes are read: it may add some.
	s.refillLocked()
	for key := range s.changedGroups {
		_, u.Groups[key] = s.groups[key]
	}
	for key := range s.changedNamed {
		_, u.Named[key] = s.named[key]
	}
	for name := range s.changedPolicies {
		if ns := s.namespaces[name.Namespace]; ns != nil && ns.policies[name.Name] != nil {
			u.Policies[name] = &ns.policies[name.Name].Policy
		} else {
			u.Policies[name] = nil
		}
	}
	for name := range s.changedPods {
		if p := s.pods[name]; p != nil && len(p.Addresses) > 0 {
			u.Pods[name] = s.describeLocked(p)
		} else {
			u.Pods[name] = nil
		}
	}
	for key := range s.changedIsolations {
		if i := s.isolations[key]; i != nil {
			u.Isolations[key] = &i.Isolation
		} else {
			u.Isolations[key] = nil
		}
	}
	u.Closed = s.closedLocked()
	for _, g := range s.groups {
		u.Left += g.left
	}
	clear(s.changedPods)
	clear(s.changedPolicies)
	clear(s.changedGroups)
	clear(s.changedNamed)
	clear(s.changedIsolations)
	return u
}

// describeLocked returns what policies need to know about a pod that has an address, and settles its isolation. Only
// ports that some policy names are listed.
func (s *State) describeLocked(p *pod) *network.PolicyPod {
	out := &network.PolicyPod{Addresses: p.Addresses, Local: p.Local}
	for g := range p.groups {
		out.Groups = append(out.Groups, g.key)
	}
	slices.Sort(out.Groups)
	for _, port := range p.Ports {
		if s.named[port.NamedPort] > 0 {
			out.Ports = append(out.Ports, port)
		}
	}
	if p.Local {
		for _, d := range network.Directions() {
			s.isolateLocked(p, d, s.isolatingLocked(p, d))
		}
	}
	out.Isolation = p.isolation
	return out
}

// closedLocked reports in which directions some pod without an address will be isolated. Until its address is known its
// traffic cannot be distinguished from that of others, so new addresses of the node's range stay closed in that
// direction.
func (s *State) closedLocked() (closed [2]bool) {
	for _, p := range s.local {
		if len(p.Addresses) > 0 {
			continue
		}
		for _, d := range network.Directions() {
			closed[d] = closed[d] || len(s.isolatingLocked(p, d)) > 0
		}
	}
	return closed
}

// isolatingLocked are the policies that isolate a pod.
func (s *State) isolatingLocked(p *pod, d network.Direction) []network.Name {
	var names []network.Name
	for name, policy := range s.namespaces[p.name.Namespace].policies {
		if policy.Affects[d] && policy.selector.Matches(p.labels) {
			names = append(names, network.Name{Namespace: p.name.Namespace, Name: name})
		}
	}
	slices.SortFunc(names, compareNames)
	return names
}

// isolateLocked notes that a pod is isolated by the policies, by none if there are none.
//
// Pods with the same policies share an isolation, which is one chain in the kernel. It goes with its last pod.
func (s *State) isolateLocked(p *pod, d network.Direction, policies []network.Name) {
	key := isolationKey(d, policies)
	old := p.isolation[d]
	if key == old {
		return
	}
	p.isolation[d] = key
	if key != "" {
		i := s.isolations[key]
		if i == nil {
			i = &isolation{Isolation: network.Isolation{Direction: d, Policies: policies}}
			s.isolations[key], s.changedIsolations[key] = i, true
		}
		i.pods++
	}
	if i := s.isolations[old]; i != nil {
		if i.pods--; i.pods == 0 {
			delete(s.isolations, old)
			s.changedIsolations[old] = true
		}
	}
}

// touchLocked has the next Take describe a pod.
func (s *State) touchLocked(p *pod) {
	s.changedPods[p.name] = true
	s.changedLocked()
}

// changedLocked wakes the loop that takes. It never blocks.
func (s *State) changedLocked() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// listedLocked notes that a kind is known completely.
func (s *State) listedLocked(kind string) {
	s.listed[kind] = true
	s.changedLocked()
}

// namespaceLocked returns a namespace, also one that is not known yet.
func (s *State) namespaceLocked(name string) *namespace {
	ns := s.namespaces[name]
	if ns == nil {
		ns = &namespace{pods: map[string]*pod{}, policies: map[string]*policy{}, groups: map[*group]bool{}}
		s.namespaces[name] = ns
	}
	return ns
}

// forgetLocked drops a namespace that is empty and unknown.
func (s *State) forgetLocked(name string) {
	if ns := s.namespaces[name]; ns != nil && !ns.known && len(ns.pods)+len(ns.policies)+len(ns.groups) == 0 {
		delete(s.namespaces, name)
	}
}

// setNamespaceLocked: labels are nil for a namespace that is gone.
//
// A change of labels can move pods of this namespace into or out of every wide group.
func (s *State) setNamespaceLocked(name string, labels map[string]string, known bool) {
	ns := s.namespaceLocked(name)
	if ns.known != known || !maps.Equal(ns.labels, labels) {
		ns.known, ns.labels = known, labels
		for g := range s.wide {
			s.matchLocked(g, ns)
		}
	}
	s.forgetLocked(name)
}
