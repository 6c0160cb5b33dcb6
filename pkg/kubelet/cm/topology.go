package cm

import (
	"cmp"
	"math/bits"
	"slices"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// MaxNUMANodes is the most NUMA nodes of a machine whose topology is considered, by default: the sets of nodes are
// tried one by one, and their number doubles with each node.
const MaxNUMANodes = 8

// Nodes is a set of NUMA nodes with the numbers 0 to 63.
type Nodes uint64

// NodesOf returns the set of these numbers; those out of range are left out.
func NodesOf(ids ...int) (n Nodes) {
	for _, id := range ids {
		if id >= 0 && id < 64 {
			n |= 1 << id
		}
	}
	return n
}

// Count returns how many nodes are in the set.
func (n Nodes) Count() int { return bits.OnesCount64(uint64(n)) }

// Has reports whether a number is in the set.
func (n Nodes) Has(id int) bool { return id >= 0 && id < 64 && n&(1<<id) != 0 }

// IDs returns the numbers, sorted.
func (n Nodes) IDs() []int {
	out := make([]int, 0, n.Count())
	for rest := uint64(n); rest != 0; rest &= rest - 1 {
		out = append(out, bits.TrailingZeros64(rest))
	}
	return out
}

// Subsets calls f with every set of some of the nodes, smaller sets first.
func (n Nodes) Subsets(f func(Nodes)) {
	all := make([]Nodes, 0, 1<<n.Count())
	for s := n; s != 0; s = (s - 1) & n {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Nodes) int { return cmp.Or(cmp.Compare(a.Count(), b.Count()), cmp.Compare(a, b)) })
	for _, s := range all {
		f(s)
	}
}

// Hint is a set of NUMA nodes that can give a resource; none: any can. It is preferred if no smaller set could ever
// give it.
type Hint struct {
	Nodes     Nodes
	Preferred bool
}

// Topology is how near to each other the resources of one container, or pod, must be.
type Topology struct {
	// Policy is none (default), best-effort, restricted or single-numa-node.
	Policy string
	// PodScope: all containers of a pod get theirs from the same nodes, instead of each from its own.
	PodScope bool
	// Nodes are the machine's, Distances[a][b] how far b is from a; nil: all are as far.
	Nodes     Nodes
	Distances map[int]map[int]int
	// Closest prefers, of sets of as many nodes, those that are near to each other.
	Closest bool
}

// Considered reports whether hints are asked for at all.
func (t Topology) Considered() bool {
	return t.Policy != "" && t.Policy != kubeletconfig.NoneTopologyManagerPolicy
}

// Merge finds the nodes from which all resources can be given, each of lists holding one resource's hints; a resource
// without any hint cannot be given. False: the policy does not take a pod with that.
//
// https://kubernetes.io/docs/tasks/administer-cluster/topology-manager/#topology-manager-policies
func (t Topology) Merge(lists [][]Hint) (Nodes, bool) {
	single := t.Policy == kubeletconfig.SingleNumaNodeTopologyManagerPolicy
	merged, least := []Hint{{Nodes: t.Nodes, Preferred: true}}, 0
	for _, hints := range lists {
		if single {
			hints = slices.DeleteFunc(slices.Clone(hints), func(h Hint) bool {
				return !h.Preferred || h.Nodes.Count() > 1
			})
		}
		merged = both(t.Nodes, merged, hints)
		least = max(least, narrowest(hints))
	}
	if len(merged) == 0 {
		return 0, t.Policy == kubeletconfig.BestEffortTopologyManagerPolicy
	}
	best := merged[0]
	for _, h := range merged[1:] {
		if t.better(h, best, least) {
			best = h
		}
	}
	if best.Nodes == t.Nodes {
		best.Nodes = 0
	}
	return best.Nodes, best.Preferred || t.Policy == kubeletconfig.BestEffortTopologyManagerPolicy
}

// both are the hints of two resources together: what is in both, each once.
func both(all Nodes, a, b []Hint) []Hint {
	if len(b) == 0 {
		b = []Hint{{}} // it cannot be given as it should
	}
	var out []Hint
	seen := map[Hint]bool{}
	for _, x := range a {
		for _, y := range b {
			if y.Nodes == 0 {
				y.Nodes = all
			}
			h := Hint{Nodes: x.Nodes & y.Nodes, Preferred: x.Preferred && y.Preferred}
			if h.Nodes != 0 && !seen[h] {
				seen[h] = true
				out = append(out, h)
			}
		}
	}
	return out
}

// narrowest is how many nodes a resource needs at least.
func narrowest(hints []Hint) int {
	least := 0
	for _, h := range hints {
		if n := h.Nodes.Count(); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// better reports whether a is to be taken rather than b: one that is preferred, then one with as few nodes as the
// resources need, least.
func (t Topology) better(a, b Hint, least int) bool {
	if a.Preferred != b.Preferred {
		return a.Preferred
	}
	if !a.Preferred {
		// Of too few and too many nodes too many are better, of either those that are nearest to what is needed.
		off := func(h Hint) int {
			if d := h.Nodes.Count() - least; d >= 0 {
				return d
			} else {
				return 64 - d
			}
		}
		if d := off(a) - off(b); d != 0 {
			return d < 0
		}
	}
	far := 0
	if t.Closest && a.Nodes.Count() == b.Nodes.Count() {
		far = cmp.Compare(t.distance(a.Nodes), t.distance(b.Nodes))
	}
	return cmp.Or(cmp.Compare(a.Nodes.Count(), b.Nodes.Count()), far, cmp.Compare(a.Nodes, b.Nodes)) < 0
}

// distance is how far nodes are from each other, on the average.
func (t Topology) distance(n Nodes) float64 {
	sum, pairs := 0, 0
	for _, a := range n.IDs() {
		for _, b := range n.IDs() {
			sum, pairs = sum+t.Distances[a][b], pairs+1
		}
	}
	return float64(sum) / float64(max(pairs, 1))
}

// HintsFor returns the hints for a request of so many things that are near to some nodes: the sets of nodes that have
// enough of them free. total and free return, for a set of nodes, how many things near to one of its nodes there are,
// and are free.
func HintsFor(all Nodes, request int, total, free func(Nodes) int) []Hint {
	var out []Hint
	least := 0
	all.Subsets(func(n Nodes) {
		if least == 0 && total(n) >= request {
			least = n.Count()
		}
		if free(n) >= request {
			out = append(out, Hint{Nodes: n})
		}
	})
	for i := range out {
		out[i].Preferred = out[i].Nodes.Count() == least
	}
	return out
}
