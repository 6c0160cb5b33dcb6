package cpu

import (
	"slices"

	"k8s.io/utils/cpuset"

	"bonsai/pkg/kubelet/cm"
)

// What CPUs share, the most first.
func bySocket(c cm.CPU) int { return c.Socket }
func byNUMA(c cm.CPU) int   { return c.NUMA }
func byCache(c cm.CPU) int  { return c.Cache }
func byCore(c cm.CPU) int   { return c.Core }

// take picks n of the available CPUs that share as much as they can. False: there are not as many.
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

// pack takes whole sockets and NUMA nodes first, then all CPUs around a cache where that is wanted, whole cores, and
// single threads at last.
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

// best is, of groups of CPUs, the one nearest to those that are taken; then the one where the least else is free, so
// that what is whole stays so.
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
	// score is the less the better, its first figures first.
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

// distribute takes as many from each of as few NUMA nodes as have them together; false if no nodes can give as many
// each.
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
