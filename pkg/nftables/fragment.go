package nftables

import (
	"maps"
	"slices"

	"sigs.k8s.io/knftables"
)

// Fragment is a part of a table: what one service needs, or what is always there. Comparing two fragments gives the
// commands that lead from one to the other.
type Fragment struct {
	Chains   map[string]Chain
	Sets     map[string]Set
	Elements map[Element]string
}

// Chain is a chain's rules in order; Base is nil unless the chain is hooked into the kernel.
type Chain struct {
	Base  *Base
	Rules []string
}

// Base is where and when a chain is called.
type Base struct {
	Kind     knftables.BaseChainType
	Hook     knftables.BaseChainHook
	Priority knftables.BaseChainPriority
}

// Set describes a set, or with a value part in the type a map. With Seconds, the kernel adds elements and forgets them
// that long after their last use.
type Set struct {
	IsMap   bool
	Type    string
	Seconds int32
}

// Element is a place in a set or map; its parts are joined by " . ". A map's value is kept next to it, "" for sets.
type Element struct{ In, Key string }

// NewFragment returns an empty fragment.
func NewFragment() Fragment {
	return Fragment{Chains: map[string]Chain{}, Sets: map[string]Set{}, Elements: map[Element]string{}}
}

// Put sets the value of key in a map, or adds it to a set, with the value "".
func (f Fragment) Put(in, key, value string) { f.Elements[Element{in, key}] = value }

// Hook adds a chain that the kernel calls.
func (f Fragment) Hook(name string, kind knftables.BaseChainType, hook knftables.BaseChainHook,
	priority knftables.BaseChainPriority, rules ...string) {
	f.Chains[name] = Chain{Base: &Base{kind, hook, priority}, Rules: rules}
}

func (f Fragment) empty() bool { return len(f.Chains)+len(f.Sets)+len(f.Elements) == 0 }

func (f Fragment) equal(g Fragment) bool {
	return maps.Equal(f.Elements, g.Elements) && maps.Equal(f.Sets, g.Sets) &&
		maps.EqualFunc(f.Chains, g.Chains, Chain.equal)
}

func (c Chain) equal(d Chain) bool {
	same := c.Base == d.Base || c.Base != nil && d.Base != nil && *c.Base == *d.Base
	return same && slices.Equal(c.Rules, d.Rules)
}
