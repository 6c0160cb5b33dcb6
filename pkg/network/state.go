package network

import (
	"net/netip"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/boundedfrequency"
)

// State collects the nodes of the cluster as one of them sees them. Its methods may be called from several goroutines.
type State struct {
	node string
	pods []netip.Prefix
	wake chan struct{} // has room for one: Take gives everything, however often it changed

	// mu guards all below.
	mu     sync.Mutex
	nodes  map[string]nodeFacts
	listed bool
}

var _ boundedfrequency.State = (*State)(nil)

// Update is what the node's network should be.
type Update struct {
	// PodCIDRs are the node's own; empty if it has none yet.
	PodCIDRs []netip.Prefix
	// Routes lead to other nodes' pods, all of them.
	Routes map[netip.Prefix]netip.Addr
}

// NewState returns an empty state for the node called name. pods are the ranges of pod addresses in the cluster;
// without one of a family any is believed.
func NewState(name string, pods []netip.Prefix) *State {
	return &State{node: name, pods: pods, wake: make(chan struct{}, 1), nodes: map[string]nodeFacts{}}
}

// Changed implements boundedfrequency.State.
func (s *State) Changed() <-chan struct{} { return s.wake }

// Ready implements boundedfrequency.State: all nodes are known.
func (s *State) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed
}

// PodCIDRs are the node's own ranges of pod addresses, as far as they are known.
func (s *State) PodCIDRs() []netip.Prefix {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[s.node].PodCIDRs
}

// Take returns what the network should be now.
func (s *State) Take() Update {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Update{PodCIDRs: s.nodes[s.node].PodCIDRs, Routes: routesOf(s.nodes, s.node, s.pods)}
}

// Nodes feeds nodes into s.
func (s *State) Nodes() apiclient.Sink[*corev1.Node] {
	replace := func(all []*corev1.Node) {
		s.mu.Lock()
		defer s.mu.Unlock()
		clear(s.nodes)
		for _, o := range all {
			s.nodes[o.Name] = nodeOf(o)
		}
		s.listed = true
		s.changedLocked()
	}
	set := func(o *corev1.Node) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := nodeOf(o); !reflect.DeepEqual(s.nodes[n.Name], n) { // not for every heartbeat
			s.nodes[n.Name] = n
			s.changedLocked()
		}
	}
	drop := func(o *corev1.Node) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.nodes, o.Name)
		s.changedLocked()
	}
	return apiclient.SinkFuncs[*corev1.Node]{ReplaceFunc: replace, SetFunc: set, DeleteFunc: drop}
}

// changedLocked must be called with mu held.
func (s *State) changedLocked() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
