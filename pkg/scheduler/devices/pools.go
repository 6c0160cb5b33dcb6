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

// poolTable is the pools of devices, by the nodes that can reach them. Devices.mu guards it.
type poolTable struct {
	byID map[poolID]*pool
	// local are the pools of one node only, by its name; shared are all others. A pool without slices is in neither.
	local  map[string]map[poolID]*pool
	shared map[poolID]*pool
	// epoch changes with the shared pools: what every node can reach depends on them.
	epoch int64
}

func newPoolTable() poolTable {
	return poolTable{byID: map[poolID]*pool{}, local: map[string]map[poolID]*pool{}, shared: map[poolID]*pool{}}
}

// poolID names a pool: its name is unique only within its driver.
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

// change changes a pool, and files it again in local or shared. It returns the nodes that the pool belonged or belongs
// to. A pool that belongs to no single node concerns all of them: then epoch changes.
func (t *poolTable) change(id poolID, by func(*pool)) (nodes []string) {
	p := t.byID[id]
	if p == nil {
		p = &pool{slices: map[string]*resourcev1.ResourceSlice{}, devices: map[structured.DeviceID]int{},
			shares:   map[structured.SharedDeviceID]int{},
			capacity: structured.NewConsumedCapacityCollection()}
		t.byID[id] = p
	}
	was, had := p.node, len(p.slices) > 0
	by(p)
	p.node = p.home()
	has := len(p.slices) > 0
	if had && (!has || was != p.node) {
		t.unfile(id, was)
	}
	if has {
		if p.node == "" {
			t.shared[id] = p
		} else {
			if t.local[p.node] == nil {
				t.local[p.node] = map[poolID]*pool{}
			}
			t.local[p.node][id] = p
		}
	}
	if had && was == "" || has && p.node == "" {
		t.epoch++
	}
	if p.empty() {
		delete(t.byID, id)
	}
	for _, node := range []string{was, p.node} {
		if node != "" && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func (t *poolTable) unfile(id poolID, node string) {
	if node == "" {
		delete(t.shared, id)
		return
	}
	delete(t.local[node], id)
	if len(t.local[node]) == 0 {
		delete(t.local, node)
	}
}

// count takes the devices of a claim's new state and gives back those of its old one; nil is no claim. Claims
// with administrative access take nothing.
func (t *poolTable) count(before, after *resourcev1.ResourceClaim) (nodes []string) {
	old, now := allocation(before), allocation(after)
	if old == now || old != nil && now != nil && equality.Semantic.DeepEqual(old.Devices.Results, now.Devices.Results) {
		return nil // what this scheduler had assumed came true, or the claim changed otherwise
	}
	touch := func(a *resourcev1.AllocationResult, by int) {
		for i := range results(a) {
			r := &a.Devices.Results[i]
			if !ptr.Deref(r.AdminAccess, false) {
				nodes = append(nodes, t.change(poolID{r.Driver, r.Pool}, func(p *pool) { p.count(r, by) })...)
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

// reach returns the slices that a node can reach, and what is taken of their pools. The result shares nothing that
// changes, so that it can be read after Devices.mu is released.
func (t *poolTable) reach(node string) ([]*resourcev1.ResourceSlice, structured.AllocatedState) {
	state := structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection()}
	var all []*resourcev1.ResourceSlice
	for _, pools := range []map[poolID]*pool{t.local[node], t.shared} {
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
