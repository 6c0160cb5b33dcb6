package memory

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/cm"
)

// The state of NUMA nodes as the file memory_manager_state has it. Sizes are bytes. The names of the types are part of
// the file's format, through its checksum: they stay as Kubernetes has them, exported although no other package uses
// them.
type (
	// NUMANodeMap are the machine's nodes, by number.
	NUMANodeMap map[int]*NUMANodeState
	// NUMANodeState is one node.
	NUMANodeState struct {
		// NumberOfAssignments counts the blocks that have a part here.
		NumberOfAssignments int `json:"numberOfAssignments"`
		// MemoryMap has the node's memory, and its huge pages by their size.
		MemoryMap map[corev1.ResourceName]*MemoryTable `json:"memoryMap"`
		// Cells are the nodes from which blocks are given together with this one, itself included.
		Cells []int `json:"cells"`
	}
	// MemoryTable is one kind of memory of a node.
	MemoryTable struct {
		TotalMemSize uint64 `json:"total"`
		// SystemReserved is kept from containers. Allocatable is what they may have: the sum of Reserved, which is
		// given, and Free.
		SystemReserved uint64 `json:"systemReserved"`
		Allocatable    uint64 `json:"allocatable"`
		Reserved       uint64 `json:"reserved"`
		Free           uint64 `json:"free"`
	}
	// Block is memory of one kind that a container has.
	Block struct {
		NUMAAffinity []int               `json:"numaAffinity"`
		Type         corev1.ResourceName `json:"type"`
		Size         uint64              `json:"size"`
	}
	// ContainerMemoryAssignments are the blocks of containers, by the pod's UID and the container's name.
	ContainerMemoryAssignments map[string]map[string][]Block
)

// Reserved is what is kept from containers on each NUMA node.
type Reserved map[int]map[corev1.ResourceName]uint64

// stateOf is the machine with nothing given.
func stateOf(machine cm.Machine, reserved Reserved) (NUMANodeMap, error) {
	out := NUMANodeMap{}
	for _, id := range machine.Nodes().IDs() {
		n := &NUMANodeState{MemoryMap: map[corev1.ResourceName]*MemoryTable{}, Cells: []int{id}}
		pages := uint64(0)
		for kind, total := range machine.Memory[id] {
			n.MemoryMap[kind] = &MemoryTable{TotalMemSize: total, SystemReserved: reserved[id][kind]}
			if kind != corev1.ResourceMemory {
				pages += total
			}
		}
		for kind, t := range n.MemoryMap {
			gone := t.SystemReserved
			if kind == corev1.ResourceMemory {
				gone += pages
			}
			if gone > t.TotalMemSize {
				return nil, fmt.Errorf("the reserved %s of NUMA node %d is more than it has", kind, id)
			}
			t.Allocatable, t.Free = t.TotalMemSize-gone, t.TotalMemSize-gone
		}
		out[id] = n
	}
	for id, kinds := range reserved {
		for kind := range kinds {
			if out[id] == nil || out[id].MemoryMap[kind] == nil {
				return nil, fmt.Errorf("there is no %s on NUMA node %d to be reserved", kind, id)
			}
		}
	}
	return out, nil
}

// with is the machine with what is given. It fails if more is given than there is, or a node is in two groups of nodes.
func (s NUMANodeMap) with(given ContainerMemoryAssignments) (NUMANodeMap, error) {
	out := NUMANodeMap{}
	for id, n := range s {
		next := &NUMANodeState{MemoryMap: map[corev1.ResourceName]*MemoryTable{}, Cells: []int{id}}
		for kind, t := range n.MemoryMap {
			next.MemoryMap[kind] = new(*t)
		}
		out[id] = next
	}
	for _, uid := range slices.Sorted(maps.Keys(given)) {
		for _, name := range slices.Sorted(maps.Keys(given[uid])) {
			for _, b := range given[uid][name] {
				if err := out.give(b); err != nil {
					return nil, fmt.Errorf("pod %s, container %s: %w", uid, name, err)
				}
			}
		}
	}
	return out, nil
}

// give takes a block from its nodes, from the first ones as much as they have. One that is used up by a later container
// of its pod counts for nothing.
func (s NUMANodeMap) give(b Block) error {
	if b.Size == 0 {
		return nil
	}
	if !s.usable(cm.NodesOf(b.NUMAAffinity...)) {
		return fmt.Errorf("NUMA nodes %v have blocks of other groups of nodes", b.NUMAAffinity)
	}
	left := b.Size
	for _, id := range b.NUMAAffinity {
		t := s[id].MemoryMap[b.Type]
		if t == nil {
			return fmt.Errorf("there is no %s on NUMA node %d", b.Type, id)
		}
		some := min(left, t.Free)
		t.Free, t.Reserved, left = t.Free-some, t.Reserved+some, left-some
		s[id].NumberOfAssignments++
		s[id].Cells = b.NUMAAffinity
	}
	if left > 0 {
		return fmt.Errorf("%d bytes of %s are more than NUMA nodes %v have", b.Size, b.Type, b.NUMAAffinity)
	}
	return nil
}

// usable reports whether blocks may be given from these nodes together: each of them has none yet, or from the same
// group.
func (s NUMANodeMap) usable(nodes cm.Nodes) bool {
	for _, id := range nodes.IDs() {
		n := s[id]
		if n == nil || n.NumberOfAssignments > 0 && cm.NodesOf(n.Cells...) != nodes {
			return false
		}
	}
	return nodes != 0
}

// sum is how much of a kind of memory these nodes have together.
func (s NUMANodeMap) sum(nodes cm.Nodes, kind corev1.ResourceName, of func(*MemoryTable) uint64) (total uint64) {
	for _, id := range nodes.IDs() {
		if n := s[id]; n != nil && n.MemoryMap[kind] != nil {
			total += of(n.MemoryMap[kind])
		}
	}
	return total
}

func free(t *MemoryTable) uint64        { return t.Free }
func allocatable(t *MemoryTable) uint64 { return t.Allocatable }

// nodes are all that there are.
func (s NUMANodeMap) nodes() cm.Nodes { return cm.NodesOf(slices.Collect(maps.Keys(s))...) }

// demand is what a container, or pod, is to be given.
type demand map[corev1.ResourceName]uint64

// fits reports whether all can be given from these nodes. again is what of them may be used once more: blocks of init
// containers that have ended then.
func (s NUMANodeMap) fits(nodes cm.Nodes, d demand, again []Block) bool {
	if !s.usable(nodes) {
		return false
	}
	for kind, size := range d {
		if s.sum(nodes, kind, free)+reusable(again, nodes, kind) < size {
			return false
		}
	}
	return true
}

// reusable is how much of a kind there is in blocks of exactly these nodes.
func reusable(again []Block, nodes cm.Nodes, kind corev1.ResourceName) (total uint64) {
	for _, b := range again {
		if b.Type == kind && cm.NodesOf(b.NUMAAffinity...) == nodes {
			total += b.Size
		}
	}
	return total
}

// choose finds the nodes to give from: near where that fits; else the smallest set that does, with those of near in it.
func (s NUMANodeMap) choose(near cm.Nodes, d demand, again []Block) (cm.Nodes, bool) {
	if near != 0 && s.fits(near, d, again) {
		return near, true
	}
	var best cm.Nodes
	s.nodes().Subsets(func(n cm.Nodes) { // the smaller ones first
		if best == 0 && n&near == near && s.fits(n, d, again) {
			best = n
		}
	})
	return best, best != 0
}

// hints tell for each kind of memory from which nodes it can be given. All kinds come from the same.
func (s NUMANodeMap) hints(d demand, again []Block) map[string][]cm.Hint {
	out := map[string][]cm.Hint{}
	for kind, size := range d {
		least := 0
		var list []cm.Hint
		s.nodes().Subsets(func(n cm.Nodes) {
			if least == 0 && s.sum(n, kind, allocatable) >= size {
				least = n.Count()
			}
			if s.fits(n, d, again) {
				list = append(list, cm.Hint{Nodes: n})
			}
		})
		for i := range list {
			list[i].Preferred = list[i].Nodes.Count() == least
		}
		out[string(kind)] = list
	}
	return out
}
