package volumes

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"bonsai/api/core"
	"bonsai/pkg/scheduler/model"
)

// Attached calls yield with each volume that a CSI driver gives a pod, by a unique name: the volume's or,
// before there is a volume, the claim's. Drivers that no node limits, and that nodes may lack, are left out.
//
// A claim without a volume counts by its class's provisioner, as if its volume were attached already: two pods must not
// both get the last place on a node. Volumes that several pods share have one name, and count once.
func (v *Volumes) Attached(pod *model.PodInfo, yield func(driver, volume string)) {
	if len(pod.Claims) == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, pc := range pod.Claims {
		if c := v.claims[claimKey(pod.Pod.Namespace, pc.Name)].now(); c != nil {
			if driver, volume := v.attachmentLocked(c); v.limited[driver] > 0 || v.requiredLocked(driver) {
				yield(driver, volume)
			}
		}
	}
}

// Required reports whether pods with volumes of a driver go only to nodes where it is installed (KEP-5030). Other
// drivers may come to the node later.
func (v *Volumes) Required(driver string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.requiredLocked(driver)
}

func (v *Volumes) requiredLocked(driver string) bool {
	d := v.drivers[driver]
	return d != nil && d.Spec.PreventPodSchedulingIfMissing != nil && *d.Spec.PreventPodSchedulingIfMissing
}

// attachmentLocked returns the driver that gives a claim's volume, "" if none does, and the volume's name there.
func (v *Volumes) attachmentLocked(c *corev1.PersistentVolumeClaim) (driver, volume string) {
	if pv, done := v.boundLocked(c); done {
		if pv == nil || pv.Spec.CSI == nil {
			return "", ""
		}
		return pv.Spec.CSI.Driver, handleName(pv.Spec.CSI)
	}
	if class := v.classes[core.ClaimClass(c)]; class != nil {
		driver = class.Provisioner
	}
	return driver, "claim:" + claimKey(c.Namespace, c.Name)
}

// AttachedTo calls yield with each volume that is attached to a node, whichever pod wanted it, by the names of
// Attached. Drivers that no node limits are left out.
//
// Pods alone are not enough: a volume stays attached for a while after its pod is gone, and other programs attach too.
func (v *Volumes) AttachedTo(node string, yield func(driver, volume string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.attachments[node] {
		if v.limited[a.driver] > 0 {
			yield(a.driver, v.nameLocked(a))
		}
	}
}

// attachment is a persistent volume that a driver attached, or is to attach.
type attachment struct{ driver, volume string }

// nameLocked is the attached volume by the names of Attached. That of a volume which is not known is no claim's.
//
// A volume is counted by its handle, because two PersistentVolumes can stand for one volume of the driver.
func (v *Volumes) nameLocked(a attachment) string {
	if pv := v.volumes[a.volume].now(); pv != nil && pv.Spec.CSI != nil {
		return handleName(pv.Spec.CSI)
	}
	return "volume:" + a.volume
}

func handleName(source *corev1.CSIPersistentVolumeSource) string {
	return "handle:" + source.VolumeHandle
}

// AttachmentChanged takes in an added or changed VolumeAttachment, or a deleted one (a is nil). It returns the nodes
// whose attached volumes changed.
//
// The caller wakes the nodes that it returns (cache.Touch) and the pods that wait for room on them.
func (v *Volumes) AttachmentChanged(old, a *storagev1.VolumeAttachment) (nodes []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if old != nil && a != nil && old.Spec.NodeName == a.Spec.NodeName && attachmentOf(old) == attachmentOf(a) {
		return nil
	}
	if old != nil && v.attachments[old.Spec.NodeName] != nil {
		delete(v.attachments[old.Spec.NodeName], old.Name)
		if len(v.attachments[old.Spec.NodeName]) == 0 {
			delete(v.attachments, old.Spec.NodeName)
		}
		v.uncountLocked(attachmentOf(old).volume)
		nodes = append(nodes, old.Spec.NodeName)
	}
	if a == nil || attachmentOf(a).volume == "" {
		return nodes
	}
	if v.attachments[a.Spec.NodeName] == nil {
		v.attachments[a.Spec.NodeName] = map[string]attachment{}
	}
	v.attachments[a.Spec.NodeName][a.Name] = attachmentOf(a)
	v.attached[attachmentOf(a).volume]++
	return append(nodes, a.Spec.NodeName)
}

// uncountLocked notes that a volume has one attachment less.
func (v *Volumes) uncountLocked(volume string) {
	if v.attached[volume]--; v.attached[volume] <= 0 {
		delete(v.attached, volume)
	}
}

// renamedLocked notes that a volume came or went: if it is attached, it counts by another name.
func (v *Volumes) renamedLocked(volume string) {
	if v.attached[volume] > 0 {
		v.counted++
	}
}

// attachmentOf reads the volume of an attachment; an inline one has none.
func attachmentOf(a *storagev1.VolumeAttachment) attachment {
	if a.Spec.Source.PersistentVolumeName == nil {
		return attachment{}
	}
	return attachment{a.Spec.Attacher, *a.Spec.Source.PersistentVolumeName}
}

// Counted changes whenever an attached volume turns out to be another than it was counted as, and whenever a claim
// turns out to be of another driver than it was counted for, as one of a class without a provisioner does when it is
// bound: how many volumes the nodes of its pods have is another number then.
//
// Whoever keeps numbers of volumes by node compares it, and counts again after a change.
func (v *Volumes) Counted() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.counted
}

// recountLocked makes a change that concerns a claim, and notes whether it is of another driver after it. One that was
// not known is counted nowhere yet.
//
// The lock is held around the change, so that before and after are of the same moment.
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
