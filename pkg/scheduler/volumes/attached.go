package volumes

import (
	corev1 "k8s.io/api/core/v1"

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
		if c := v.claims[claimKey(pod.Pod.Namespace, pc.Name)].now(); c != nil {
			if driver, volume := v.attachmentLocked(c); v.limited[driver] > 0 {
				yield(driver, volume)
			}
		}
	}
}

// attachmentLocked returns the driver that gives a claim's volume, "" if none does, and the volume's name there.
func (v *Volumes) attachmentLocked(c *corev1.PersistentVolumeClaim) (driver, volume string) {
	if pv, done := v.boundLocked(c); done {
		if pv == nil || pv.Spec.CSI == nil {
			return "", ""
		}
		return pv.Spec.CSI.Driver, "handle:" + pv.Spec.CSI.VolumeHandle
	}
	if class := v.classes[core.ClaimClass(c)]; class != nil {
		driver = class.Provisioner
	}
	return driver, "claim:" + claimKey(c.Namespace, c.Name)
}

// Counted changes whenever a claim turns out to be of another driver than it was counted for, as one of a class without a provisioner does
// when it is bound: how many volumes the nodes of its pods have is another number then.
func (v *Volumes) Counted() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.counted
}

// recountLocked makes a change that concerns a claim, and notes whether it is of another driver after it. One that was not known is
// counted nowhere yet.
func (v *Volumes) recountLocked(claim string, change func()) {
	before := v.claims[claim].now()
	if before == nil {
		change()
		return
	}
	was, _ := v.attachmentLocked(before)
	change()
	if after := v.claims[claim].now(); after != nil {
		if is, _ := v.attachmentLocked(after); is != was && v.limited[was]+v.limited[is] > 0 {
			v.counted++
		}
	}
}
