package nft

import (
	"maps"
	"slices"

	"sigs.k8s.io/knftables"
)

// fragment is a part of a table: what one service needs, or what is always there. Comparing two fragments gives the commands
// that lead from one to the other.
type fragment struct {
	chains   map[string]chain
	sets     map[string]set
	elements map[element]string
}

// chain is a chain's rules in order; base is nil unless the chain is hooked into the kernel.
type chain struct {
	base  *base
	rules []string
}

// base is where and when a chain is called.
type base struct {
	kind     knftables.BaseChainType
	hook     knftables.BaseChainHook
	priority knftables.BaseChainPriority
}

// set describes a set, or with a value part in the type a map. With seconds, the kernel adds elements and forgets them that long
// after their last use.
type set struct {
	isMap   bool
	typ     string
	seconds int32
}

// element is a place in a set or map; its parts are joined by " . ". The value beside it is empty for sets.
type element struct{ in, key string }

func newFragment() fragment {
	return fragment{chains: map[string]chain{}, sets: map[string]set{}, elements: map[element]string{}}
}

func (f fragment) empty() bool { return len(f.chains)+len(f.sets)+len(f.elements) == 0 }

func (f fragment) equal(g fragment) bool {
	return maps.Equal(f.elements, g.elements) && maps.Equal(f.sets, g.sets) && maps.EqualFunc(f.chains, g.chains, chain.equal)
}

func (c chain) equal(d chain) bool {
	same := c.base == d.base || c.base != nil && d.base != nil && *c.base == *d.base
	return same && slices.Equal(c.rules, d.rules)
}
