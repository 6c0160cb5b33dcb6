package pleg

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Record is the state of everything a pod has in the runtime, by id.
type Record map[string]runtime.State

// Records takes what matters of a list.
func Records(pods []*runtime.PodStatus) map[types.UID]Record {
	out := make(map[types.UID]Record, len(pods))
	for _, p := range pods {
		r := Record{}
		for _, s := range p.Sandboxes {
			r[s.ID] = runtime.StateExited
			if s.Ready {
				r[s.ID] = runtime.StateRunning
			}
		}
		for _, c := range p.Containers {
			r[c.ID.ID] = c.State
		}
		out[p.UID] = r
	}
	return out
}

// Diff names the pods that differ between two lists, sorted: something appeared, vanished or changed its state.
func Diff(before, after map[types.UID]Record) []types.UID {
	changed := map[types.UID]bool{}
	for uid, a := range after {
		if !maps.Equal(before[uid], a) {
			changed[uid] = true
		}
	}
	for uid := range before {
		if _, ok := after[uid]; !ok {
			changed[uid] = true
		}
	}
	return slices.Sorted(maps.Keys(changed))
}
