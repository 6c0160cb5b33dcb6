package pleg

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// record is the state of everything a pod has in the runtime, by id.
type record map[string]runtime.State

// records takes what matters of a list.
func records(pods []*runtime.PodStatus) map[types.UID]record {
	out := make(map[types.UID]record, len(pods))
	for _, p := range pods {
		r := record{}
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

// diff names the pods that differ between two lists, sorted: something appeared, vanished or changed its state.
func diff(before, after map[types.UID]record) []types.UID {
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
