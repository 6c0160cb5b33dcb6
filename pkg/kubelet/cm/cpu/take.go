package cpu

import (
	"slices"

	"k8s.io/utils/cpuset"

	"bonsai/pkg/kubelet/cm"
)

// What CPUs may share, from the largest unit to the smallest.
func bySocket(c cm.CPU) int { return c.Socket }
func byNUMA(c cm.CPU) int   { return c.NUMA }
func byCache(c cm.CPU) int  { return c.Cache }
func byCore(c cm.CPU) int   { return c.Core }

// take picks n of the available CPUs that share as much as possible. It returns false if there are fewer. It is pure,
// and the same arguments give the same CPUs.
func take(m cm.Machine, available cpuset.CPUSet, n int, o Options) (cpuset.CPUSet, bool) {
	if available.Size() < n {
		return cpuset.CPUSet{}, false
	}
	if o.distributeAcrossNUMA {
		if out, ok := distribute(m, available, n, o); ok {
			return out, true
		}
	}
	return pack(m, available, n, o), true
}

// pack takes whole sockets and NUMA nodes first, then, if wanted, all CPUs around a cache, then whole cores, and at
// last single threads. The caller has checked that n are available. A unit counts as whole only if all its CPUs are
// free and still needed, so a container never gets more than n. Each level starts with what the larger ones left over.
func pack(m cm.Machine, available cpuset.CPUSet, n int, o Options) cpuset.CPUSet {
	levels := []func(cm.CPU) int{bySocket, byNUMA}
	if o.alignByUncoreCache {
		levels = append(levels, byCache)
	}
	taken := cpuset.New()
	for _, by := range append(levels, byCore) {
		for {
			free := available.Difference(taken)
			whole := slices.DeleteFunc(m.Group(m.Set(func(cm.CPU) bool {
				return true
			}), by), func(g cpuset.CPUSet) bool {
				return g.Size() > n-taken.Size() || !g.IsSubsetOf(free)
			})
			if len(whole) == 0 {
				break
			}
			taken = taken.Union(best(m, whole, taken, free))
		}
	}
	for taken.Size() < n {
		free := available.Difference(taken)
		taken = taken.Union(best(m, m.Group(free, func(c cm.CPU) int { return c.ID }), taken, free))
	}
	return taken
}

// best returns the group of CPUs that is nearest to those that are taken; among equals the one with the least free
// around it, so that whole units stay whole. Its last criterion is the lowest id, so that two groups are never equal.
// groups is not empty.
func best(m cm.Machine, groups []cpuset.CPUSet, taken, free cpuset.CPUSet) cpuset.CPUSet {
	by := map[int]cm.CPU{}
	near, left := []func(cm.CPU) int{byNUMA, bySocket, byCache, byCore},
		[]func(cm.CPU) int{bySocket, byNUMA, byCache, byCore}
	takenIn, freeIn := make([]map[int]int, len(near)), make([]map[int]int, len(left))
	for i := range near {
		takenIn[i], freeIn[i] = map[int]int{}, map[int]int{}
	}
	for _, c := range m.CPUs {
		by[c.ID] = c
		for i := range near {
			if taken.Contains(c.ID) {
				takenIn[i][near[i](c)]++
			}
			if free.Contains(c.ID) {
				freeIn[i][left[i](c)]++
			}
		}
	}
	// A lower score is better; earlier figures count first.
	score := func(g cpuset.CPUSet) []int {
		ids := g.List()
		out := make([]int, 0, 2*len(near)+1)
		sum := func(of func(cm.CPU) int, counts map[int]int) (n int) {
			seen := map[int]bool{}
			for _, id := range ids {
				if k := of(by[id]); !seen[k] {
					seen[k] = true
					n += counts[k]
				}
			}
			return n
		}
		for i, of := range near {
			out = append(out, -sum(of, takenIn[i]))
		}
		for i, of := range left {
			out = append(out, sum(of, freeIn[i]))
		}
		return append(out, ids[0])
	}
	chosen, least := groups[0], score(groups[0])
	for _, g := range groups[1:] {
		if s := score(g); slices.Compare(s, least) < 0 {
			chosen, least = g, s
		}
	}
	return chosen
}

// distribute takes the same number from each of as few NUMA nodes as possible; false if no set of nodes can give that.
// It takes the first set of nodes that fits and leaves the others unseen. n must divide evenly into whole cores on each
// node, if fullPCPUsOnly asks for these. take falls back to pack otherwise.
func distribute(m cm.Machine, available cpuset.CPUSet, n int, o Options) (cpuset.CPUSet, bool) {
	unit := 1
	if o.fullPCPUsOnly {
		unit = m.PerCore()
	}
	out, done := cpuset.New(), false
	m.Nodes().Subsets(func(nodes cm.Nodes) {
		if done || n%(unit*nodes.Count()) != 0 {
			return
		}
		each, all := n/nodes.Count(), cpuset.New()
		for _, id := range nodes.IDs() {
			here := available.Intersection(m.On(cm.NodesOf(id)))
			if here.Size() < each {
				return
			}
			all = all.Union(pack(m, here, each, o))
		}
		out, done = all, true
	})
	return out, done
}
