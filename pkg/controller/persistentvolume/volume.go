package persistentvolume

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/core/volumebinding"
)

// volumeView is what is known when a volume is looked at.
type volumeView struct {
	volume *corev1.PersistentVolume
	// claim has the name that the volume's claimRef says; nil only if there surely is none.
	claim *corev1.PersistentVolumeClaim
}

// settled reports whether a volume was found to be without its claim before: it is not asked for again.
func settled(v *corev1.PersistentVolume) bool {
	return v.Status.Phase == corev1.VolumeReleased || v.Status.Phase == corev1.VolumeFailed
}

// stepVolume is what to do next about a volume, by its claimRef: without a uid it is free, or reserved by a user; with
// the uid of a claim that is gone it is released; with a claim that has no volume yet, the claim's loop goes on; with a
// claim that has this one it is bound; with a claim that has another one it is superfluous.
func stepVolume(s volumeView) step {
	v, c := s.volume, s.claim
	switch r := v.Spec.ClaimRef; {
	case r == nil || r.UID == "": // of nobody, or a user meant it for a claim that has not taken it yet
		next, _ := phase(v, corev1.VolumeAvailable, "")
		next.claim = r != nil
		return next
	case c == nil || c.UID != r.UID:
		return s.released()
	case c.Spec.VolumeName == "":
		if volumebinding.ModesDiffer(v, c) {
			return step{events: []event{
				{v, corev1.EventTypeWarning, "VolumeMismatch",
					fmt.Sprintf("Cannot bind PersistentVolume to requested PersistentVolumeClaim %q due to incompatible volumeMode.", c.Name)},
				{c, corev1.EventTypeWarning, "VolumeMismatch",
					fmt.Sprintf("Cannot bind PersistentVolume %q to requested PersistentVolumeClaim due to incompatible volumeMode.", v.Name)},
			}, awaits: true}
		}
		return step{claim: true}
	case c.Spec.VolumeName == v.Name:
		next, _ := phase(v, corev1.VolumeBound, "")
		return next
	}
	return s.superfluous()
}

// superfluous is for a volume whose claim has another one. Made for that claim alone, it goes; else it is free again.
//
// It happens when a provisioner made a volume while the claim was bound to another one.
func (s volumeView) superfluous() step {
	v := s.volume
	if _, provisioned := v.Annotations[volumebinding.ProvisionedBy]; provisioned &&
		v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return s.released()
	}
	if free, changed := volumebinding.Unbind(v); changed {
		return writeVolume(free)
	}
	next, _ := phase(v, corev1.VolumeAvailable, "")
	return next
}

// released is for a volume whose claim is gone. Who provisioned it deletes it, seeing the phase.
//
// Released comes before the policy is looked at, in a write of its own: what deletes data acts on that phase only.
// Recycle is deprecated and not built, so such a volume becomes Failed and keeps its data.
func (s volumeView) released() step {
	v := s.volume
	if !settled(v) {
		next, _ := phase(v, corev1.VolumeReleased, "")
		return next
	}
	fail := func(reason, text string) step {
		next, _ := phase(v, corev1.VolumeFailed, text, event{v, corev1.EventTypeWarning, reason, text})
		return next
	}
	switch v.Spec.PersistentVolumeReclaimPolicy {
	case corev1.PersistentVolumeReclaimRetain:
		return step{}
	case corev1.PersistentVolumeReclaimRecycle:
		return fail("VolumeFailedRecycle", "No recycler plugin found for the volume!")
	case corev1.PersistentVolumeReclaimDelete:
		by, provisioned := v.Annotations[volumebinding.ProvisionedBy]
		switch {
		case !provisioned:
			return fail("VolumeFailedDelete",
				fmt.Sprintf("error getting deleter volume plugin for volume %q: no deletable volume plugin matched",
					v.Name))
		case inTree(by):
			return fail("VolumeFailedDelete", "no volume plugin matched name: "+by)
		}
		return step{}
	default:
		return fail("VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy")
	}
}
