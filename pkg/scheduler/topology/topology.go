// Package topology numbers the domains of topology keys, so that counts per domain are array entries.
package topology

import (
	"bonsai/pkg/scheduler/model"
)

// None is the domain of a node without the key.
const None int32 = -1

// Dimension maps the slots of nodes to the domains of one topology key: the different values of a node label.
type Dimension struct {
	Key     string
	ids     map[string]int32
	domains []int32
}

// NewDimension returns the dimension of a node label with no node in it.
func NewDimension(key string) *Dimension { return &Dimension{Key: key, ids: map[string]int32{}} }

// Set gives the slot its domain by the node's label; a nil node has none. It returns the domain.
func (d *Dimension) Set(slot int, node *model.NodeInfo) int32 {
	for len(d.domains) <= slot {
		d.domains = append(d.domains, None)
	}
	d.domains[slot] = None
	if node == nil {
		return None
	}
	value, ok := node.Node.Labels[d.Key]
	if !ok {
		return None
	}
	id, ok := d.ids[value]
	if !ok {
		id = int32(len(d.ids))
		d.ids[value] = id
	}
	d.domains[slot] = id
	return id
}

// Of returns the domain of a slot.
func (d *Dimension) Of(slot int) int32 {
	if slot >= len(d.domains) {
		return None
	}
	return d.domains[slot]
}

// Len is the number of domains ever seen: all ids are below.
func (d *Dimension) Len() int { return len(d.ids) }

// Grow returns list, long enough for index i.
func Grow[T any](list []T, i int) []T {
	for len(list) <= i {
		var zero T
		list = append(list, zero)
	}
	return list
}
