package housekeeping

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// ContainerPolicy says how many dead containers stay.
type ContainerPolicy struct {
	// MinAge is how old a container must be to be removed, counted from its creation.
	MinAge time.Duration
	// PerContainer is how many are kept of each name in a pod, Total how many on the node; negative: any number.
	PerContainer, Total int
}

// unit is what PerContainer counts: the containers of one name in one pod.
type unit struct {
	uid  types.UID
	name string
}

// dead is a dead container; may reports whether it may be removed.
type dead struct {
	id      string
	created time.Time
	may     bool
}

// victims are the ids of the containers that are to go. all: of pods that have ended, every one. The newest container
// of a name stays while its pod has not ended, whatever the policy: the pod's status is made of it.
func (p ContainerPolicy) victims(pods []*runtime.PodStatus, ended func(types.UID) bool, all bool,
	now time.Time) map[string]bool {
	out := map[string]bool{}
	units := map[unit][]dead{}
	for _, pod := range pods {
		over := ended(pod.UID)
		old := map[string]bool{}
		for _, c := range removable(pod, over) {
			old[c.ID.ID] = now.Sub(c.CreatedAt) >= p.MinAge
			if over && all {
				out[c.ID.ID] = true
			}
		}
		for _, c := range pod.Containers {
			if c.State == runtime.StateExited && !out[c.ID.ID] {
				u := unit{pod.UID, c.Name}
				units[u] = append(units[u], dead{c.ID.ID, c.CreatedAt, old[c.ID.ID]})
			}
		}
	}
	if p.PerContainer >= 0 {
		trim(units, p.PerContainer, out)
	}
	if p.Total >= 0 && count(units) > p.Total {
		trim(units, max(p.Total/len(units), 1), out)
		trimOldest(units, count(units)-p.Total, out)
	}
	return out
}

// trim keeps that many of each unit, the newest; what may not be removed stays.
func trim(units map[unit][]dead, keep int, out map[string]bool) {
	for u, list := range units {
		rest := list[:min(keep, len(list)):min(keep, len(list))]
		for _, d := range list[len(rest):] {
			if d.may {
				out[d.id] = true
			} else {
				rest = append(rest, d)
			}
		}
		if units[u] = rest; len(rest) == 0 {
			delete(units, u)
		}
	}
}

// trimOldest takes so many of all, the oldest first.
func trimOldest(units map[unit][]dead, n int, out map[string]bool) {
	var all []dead
	for _, list := range units {
		for _, d := range list {
			if d.may {
				all = append(all, d)
			}
		}
	}
	slices.SortFunc(all, func(a, b dead) int { return a.created.Compare(b.created) })
	for _, d := range all[:min(max(n, 0), len(all))] {
		out[d.id] = true
	}
}

func count(units map[unit][]dead) (n int) {
	for _, list := range units {
		n += len(list)
	}
	return n
}

// removable returns the dead containers of a pod that nothing needs any more: all of them if the pod has ended, else
// those that have a newer successor.
func removable(p *runtime.PodStatus, ended bool) []runtime.Container {
	newest := map[string]bool{}
	var out []runtime.Container
	for _, c := range p.Containers {
		if c.State == runtime.StateExited && (ended || newest[c.Name]) {
			out = append(out, c)
		}
		newest[c.Name] = true
	}
	return out
}
