package devices

import (
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// poolID names a pool: its name is one only within its driver.
type poolID struct{ driver, pool string }

func poolOf(s *resourcev1.ResourceSlice) poolID { return poolID{s.Spec.Driver, s.Spec.Pool.Name} }

// pool is the slices of a pool, and what claims have been given of it. It may have either without the other: a claim
// keeps its devices while a driver is away.
type pool struct {
	slices map[string]*resourcev1.ResourceSlice // by name
	// node is the node that all slices name, "" if they are not of one node.
	node string
	// devices are those that one claim has for itself; of others, parts are given away: shares and capacity say which.
	devices  map[structured.DeviceID]int
	shares   map[structured.SharedDeviceID]int
	capacity structured.ConsumedCapacityCollection
}

func (p *pool) empty() bool {
	return len(p.slices) == 0 && len(p.devices) == 0 && len(p.shares) == 0 && len(p.capacity) == 0
}

// home is the one node that all slices name, "" if there is none.
func (p *pool) home() string {
	node := ""
	for _, s := range p.slices {
		n := ptr.Deref(s.Spec.NodeName, "")
		if n == "" || node != "" && n != node {
			return ""
		}
		node = n
	}
	return node
}

// placeLocked changes a pool and keeps local and shared. It returns the nodes that the pool was or is of; where that is
// none, all nodes are concerned, which epoch tells.
func (d *Devices) placeLocked(id poolID, change func(*pool)) (nodes []string) {
	p := d.pools[id]
	if p == nil {
		p = &pool{slices: map[string]*resourcev1.ResourceSlice{}, devices: map[structured.DeviceID]int{},
			shares:   map[structured.SharedDeviceID]int{},
			capacity: structured.NewConsumedCapacityCollection()}
		d.pools[id] = p
	}
	was, had := p.node, len(p.slices) > 0
	change(p)
	p.node = p.home()
	has := len(p.slices) > 0
	if had && (!has || was != p.node) {
		d.unfileLocked(id, was)
	}
	if has {
		if p.node == "" {
			d.shared[id] = p
		} else {
			if d.local[p.node] == nil {
				d.local[p.node] = map[poolID]*pool{}
			}
			d.local[p.node][id] = p
		}
	}
	if had && was == "" || has && p.node == "" {
		d.epoch++
	}
	if p.empty() {
		delete(d.pools, id)
	}
	for _, node := range []string{was, p.node} {
		if node != "" && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func (d *Devices) unfileLocked(id poolID, node string) {
	if node == "" {
		delete(d.shared, id)
		return
	}
	delete(d.local[node], id)
	if len(d.local[node]) == 0 {
		delete(d.local, node)
	}
}

// countLocked takes the devices of a claim's new state and gives back those of its old one; nil is no claim. Claims
// with administrative access take nothing.
func (d *Devices) countLocked(before, after *resourcev1.ResourceClaim) (nodes []string) {
	old, now := allocation(before), allocation(after)
	if old == now || old != nil && now != nil && equality.Semantic.DeepEqual(old.Devices.Results, now.Devices.Results) {
		return nil // what this scheduler had assumed came true, or the claim changed otherwise
	}
	touch := func(a *resourcev1.AllocationResult, by int) {
		for i := range results(a) {
			r := &a.Devices.Results[i]
			if !ptr.Deref(r.AdminAccess, false) {
				nodes = append(nodes, d.placeLocked(poolID{r.Driver, r.Pool}, func(p *pool) { p.count(r, by) })...)
			}
		}
	}
	touch(now, 1)
	touch(old, -1)
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

func allocation(c *resourcev1.ResourceClaim) *resourcev1.AllocationResult {
	if c == nil {
		return nil
	}
	return c.Status.Allocation
}

func results(a *resourcev1.AllocationResult) []resourcev1.DeviceRequestAllocationResult {
	if a == nil {
		return nil
	}
	return a.Devices.Results
}

// count counts what was given to a claim, or was given back by it. Two claims that say that they have the same device
// are both counted.
func (p *pool) count(r *resourcev1.DeviceRequestAllocationResult, by int) {
	id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
	if r.ShareID == nil {
		add(p.devices, id, by)
		return
	}
	add(p.shares, structured.MakeSharedDeviceID(id, r.ShareID), by)
	consumed := structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity)
	if by > 0 {
		p.capacity.Insert(consumed)
	} else {
		p.capacity.Remove(consumed)
	}
}

func add[K comparable](m map[K]int, k K, by int) {
	if m[k] += by; m[k] == 0 {
		delete(m, k)
	}
}

// reach is what a node can reach of one moment: the slices, and what of their pools is taken.
func (d *Devices) reachLocked(node string) ([]*resourcev1.ResourceSlice, structured.AllocatedState) {
	state := structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection()}
	var all []*resourcev1.ResourceSlice
	for _, pools := range []map[poolID]*pool{d.local[node], d.shared} {
		for _, p := range pools {
			all = slices.AppendSeq(all, maps.Values(p.slices))
			for id := range p.devices {
				state.AllocatedDevices.Insert(id)
			}
			for id := range p.shares {
				state.AllocatedSharedDeviceIDs.Insert(id)
			}
			for id, c := range p.capacity {
				state.AggregatedCapacity[id] = c.Clone()
			}
		}
	}
	// The library takes pools as they come: the same devices are to be chosen for the same question.
	slices.SortFunc(all, func(a, b *resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	return all, state
}
