package network

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// Direction is that of a pod's traffic.
type Direction int

// Into a pod, and out of it.
const (
	Ingress Direction = iota
	Egress
)

// Directions are both.
func Directions() [2]Direction { return [2]Direction{Ingress, Egress} }

// PolicyUpdate is what changed of what NetworkPolicies demand of a node. Its parts name each other: pods are isolated
// by an Isolation, which names policies, whose rules name groups and ports, whose members are pods.
type PolicyUpdate struct {
	// Groups are the sets of pods that rules name, and Named the ports that they name: true for one that there is,
	// false for one that is gone.
	Groups map[string]bool
	Named  map[NamedPort]bool
	// Policies, Isolations and Pods have what is new or changed; nil for what is gone.
	Policies   map[Name]*Policy
	Isolations map[string]*Isolation
	Pods       map[Name]*PolicyPod
	// Closed is set, in each direction, while a pod starts on the node that policies isolate: what has an address of
	// Own and is no pod that is known may be that pod.
	Closed [2]bool
	Own    []netip.Prefix
	// Left counts the memberships of pods in groups for which there was no room.
	Left int
}

// Policy is what a NetworkPolicy allows to the pods that it isolates.
type Policy struct {
	// Affects are the directions in which it isolates, Rules what is allowed there.
	Affects [2]bool
	Rules   [2][]PolicyRule
}

// PolicyRule allows traffic to or from its peers at its ports.
type PolicyRule struct {
	// AnyPeer is set if the rule is for all; else it is for the members of the Groups and the addresses of the Blocks.
	AnyPeer bool
	Groups  []string
	Blocks  []Block
	// AnyPort is set if the rule is for all ports of all protocols; else it is for Ports and Named.
	AnyPort bool
	Ports   []PortRange
	Named   []NamedPort
}

// Block is a range of addresses except some.
type Block struct {
	Range  netip.Prefix
	Except []netip.Prefix
}

// PortRange is the ports First to Last of a protocol.
type PortRange struct {
	Protocol    corev1.Protocol
	First, Last uint16
}

// NamedPort is whatever number a pod gives the name.
type NamedPort struct {
	Protocol corev1.Protocol
	Name     string
}

// Isolation is that of all pods which the same policies isolate in a direction: nothing but what one of them allows.
type Isolation struct {
	Direction Direction
	Policies  []Name
}

// PolicyPod is what policies need of a pod.
type PolicyPod struct {
	Addresses []netip.Addr
	// Groups are those that it belongs to, Ports what it calls by a name of Named.
	Groups []string
	Ports  []PodPort
	// Local is set for pods of this node. Isolation names that of each direction, "" where all is allowed.
	Local     bool
	Isolation [2]string
}

// PodPort is the number that a pod gives a name.
type PodPort struct {
	NamedPort
	Number uint16
}
