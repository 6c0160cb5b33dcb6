package model

// Snapshot is the cluster as one decision sees it.
type Snapshot struct {
	// Nodes by slot. A node keeps its slot as long as it lives; slots of removed nodes are nil until reused.
	Nodes []*NodeInfo
	// Count is the number of nodes.
	Count int
	// WithTerms counts the pods on nodes that have affinity to pods.
	WithTerms int
	// Generation is that of the newest change.
	Generation int64
	// ImagesEpoch changes when an image appears on or leaves any node, or the number of nodes changes.
	ImagesEpoch int64
	// Images are those that nodes have, by name.
	Images map[string]Image
	byName map[string]*NodeInfo
	terms  termIndex
}

// Image is an image that nodes have. Its size in bytes is what the first of these nodes reported: nodes differ by how
// they store it, which is no reason to prefer one.
type Image struct {
	Nodes int
	Size  int64
}

// On returns the image with one more node that has it.
func (i Image) On(n *NodeInfo, name string) Image {
	if i.Nodes == 0 {
		i.Size = n.Images[name]
	}
	i.Nodes++
	return i
}

// NewSnapshot returns a snapshot of the nodes, for tests and dry runs; it assigns their slots.
func NewSnapshot(nodes ...*NodeInfo) *Snapshot {
	s := &Snapshot{byName: map[string]*NodeInfo{}}
	for _, n := range nodes {
		n.Slot = len(s.Nodes)
		s.Nodes = append(s.Nodes, n)
		s.Set(n.Slot, n)
		for image := range n.Images {
			if s.Images == nil {
				s.Images = map[string]Image{}
			}
			s.Images[image] = s.Images[image].On(n, image)
		}
	}
	return s
}

// Get returns the node of that name, nil if there is none.
func (s *Snapshot) Get(name string) *NodeInfo { return s.byName[name] }

// Set puts n into a slot, nil to empty it, and keeps the counts.
func (s *Snapshot) Set(slot int, n *NodeInfo) {
	for len(s.Nodes) <= slot {
		s.Nodes = append(s.Nodes, nil)
	}
	if s.byName == nil {
		s.byName = map[string]*NodeInfo{}
	}
	if old := s.Nodes[slot]; old != nil && s.byName[old.Name()] == old {
		delete(s.byName, old.Name())
		s.Count--
		s.WithTerms -= len(old.WithTerms)
		for _, p := range old.WithTerms {
			s.terms.count(p, -1)
		}
	}
	s.Nodes[slot] = n
	if n != nil {
		s.byName[n.Name()] = n
		s.Count++
		s.WithTerms += len(n.WithTerms)
		for _, p := range n.WithTerms {
			s.terms.count(p, 1)
		}
	}
}

// All calls yield with every node.
func (s *Snapshot) All(yield func(*NodeInfo) bool) {
	for _, n := range s.Nodes {
		if n != nil && !yield(n) {
			return
		}
	}
}
