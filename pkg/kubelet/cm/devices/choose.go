package devices

import (
	"slices"

	"bonsai/pkg/kubelet/cm"
)

// wanted is what is to be chosen from.
type wanted struct {
	count int
	// again are devices of containers of the pod that have ended when this one runs: they come first.
	again map[string]bool
	// free are the others that can be had, and the nodes they are near to; those of again that are healthy are in
	// neither.
	free map[string]cm.Nodes
	// near are the nodes that the topology manager chose, none: anywhere.
	near cm.Nodes
}

// preferred asks a plug-in which of the available devices it would take, must among them; nil if it does not say.
type preferred func(available, must []string, count int) []string

// choose picks as many devices as are wanted; false if there are not as many. Devices of earlier containers come first,
// then those near to the nodes, then those to which it does not matter, then all others; of equals those that the
// plug-in prefers, then by id.
func choose(w wanted, prefer preferred) ([]string, bool) {
	if w.count > len(w.again)+len(w.free) {
		return nil, false
	}
	chosen := sortedKeys(w.again)
	if len(chosen) > w.count {
		chosen = pick(chosen, nil, w.count, prefer)
	}
	for _, tier := range tiers(w) {
		if len(chosen) < w.count {
			chosen = pick(tier, chosen, w.count, prefer)
		}
	}
	slices.Sort(chosen)
	return chosen, true
}

// tiers are the free devices, best first.
func tiers(w wanted) [][]string {
	var near, any, far []string
	for _, id := range sortedKeys(w.free) {
		switch n := w.free[id]; {
		case w.near == 0 || n&w.near != 0:
			near = append(near, id)
		case n == 0:
			any = append(any, id)
		default:
			far = append(far, id)
		}
	}
	return [][]string{near, any, far}
}

// pick adds devices of the tier to those that are chosen, until there are as many as wanted or the tier is empty.
func pick(tier, chosen []string, count int, prefer preferred) []string {
	missing := count - len(chosen)
	if len(tier) <= missing {
		return append(slices.Clone(chosen), tier...)
	}
	out := slices.Clone(chosen)
	add := func(ids []string) {
		for _, id := range ids {
			if len(out) < count && slices.Contains(tier, id) && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	add(prefer(append(slices.Clone(chosen), tier...), chosen, count))
	add(tier)
	return out
}
