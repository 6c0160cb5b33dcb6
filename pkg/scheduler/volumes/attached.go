package volumes

import (
	"bonsai/api/core"
	"bonsai/pkg/scheduler/framework"
)

// Attached calls yield with each volume that a CSI driver gives a pod, by a name of its own: that of the volume or, before there is one, of the
// claim. Of drivers that no node limits nothing is told.
func (v *Volumes) Attached(pod *framework.PodInfo, yield func(driver, volume string)) {
	if len(pod.Claims) == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.limited) == 0 {
		return
	}
	for _, pc := range pod.Claims {
		c := v.claims[claimKey(pod.Pod.Namespace, pc.Name)].now()
		if c == nil {
			continue
		}
		driver, volume := "", "claim:"+claimKey(c.Namespace, c.Name)
		if pv, done := v.boundLocked(c); done {
			if pv == nil || pv.Spec.CSI == nil {
				continue
			}
			driver, volume = pv.Spec.CSI.Driver, "handle:"+pv.Spec.CSI.VolumeHandle
		} else if class := v.classes[core.ClaimClass(c)]; class != nil {
			driver = class.Provisioner
		}
		if v.limited[driver] > 0 {
			yield(driver, volume)
		}
	}
}
