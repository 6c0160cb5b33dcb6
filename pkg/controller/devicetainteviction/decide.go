package devicetainteviction

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"bonsai/pkg/controller"
)

// concerns reports whether a pod that is new (old is nil) or changed has to be looked at. Claims are reserved for a pod
// before it has its node, so what wakes it by its claims comes too early; until it has one, nothing is to be evicted.
func concerns(old, p *corev1.Pod) bool {
	claims := controller.ResourceClaimsOf(p)
	if len(claims) == 0 || p.Spec.NodeName == "" {
		return false
	}
	return old == nil || old.Spec.NodeName == "" || !slices.Equal(controller.ResourceClaimsOf(old), claims)
}

// decide returns when a pod has to leave because of the taints of a device that one of its claims has; false means
// never. Only taints with the effect NoExecute count. The first toleration that matches a taint is the one that counts
// for it; its time runs from when the taint was added.
func decide(taints []resourcev1.DeviceTaint, tolerations []resourcev1.DeviceToleration) (leaves time.Time, ever bool) {
	for i := range taints {
		t := &taints[i]
		if t.Effect != resourcev1.DeviceTaintEffectNoExecute {
			continue
		}
		at, evicts := due(t, tolerations)
		if evicts && (!ever || at.Before(leaves)) {
			leaves, ever = at, true
		}
	}
	return leaves, ever
}

// due is when a taint is tolerated no longer; false: it is for ever. A taint without a time was always there.
func due(t *resourcev1.DeviceTaint, tolerations []resourcev1.DeviceToleration) (time.Time, bool) {
	at := time.Time{}
	if t.TimeAdded != nil {
		at = t.TimeAdded.Time
	}
	for _, tol := range tolerations {
		if !resourceclaim.ToleratesTaint(tol, *t) {
			continue
		}
		if tol.TolerationSeconds == nil {
			return time.Time{}, false
		}
		return at.Add(time.Duration(max(*tol.TolerationSeconds, 0)) * time.Second), true
	}
	return at, true
}

// device finds a device in the newest generation of its pool, nil if it is not there: of slices that are out of date
// nothing is believed.
func device(pool []*resourcev1.ResourceSlice, name string) *resourcev1.Device {
	var newest int64
	for _, s := range pool {
		newest = max(newest, s.Spec.Pool.Generation)
	}
	for _, s := range pool {
		if s.Spec.Pool.Generation != newest {
			continue
		}
		for i := range s.Spec.Devices {
			if s.Spec.Devices[i].Name == name {
				return &s.Spec.Devices[i]
			}
		}
	}
	return nil
}

// evicts reports whether a device of a slice has a taint that evicts.
func evicts(s *resourcev1.ResourceSlice) bool {
	for i := range s.Spec.Devices {
		for k := range s.Spec.Devices[i].Taints {
			if s.Spec.Devices[i].Taints[k].Effect == resourcev1.DeviceTaintEffectNoExecute {
				return true
			}
		}
	}
	return false
}
