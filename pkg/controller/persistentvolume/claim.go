package persistentvolume

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"bonsai/api/core"
	"bonsai/api/core/volumebinding"
)

// claimView is what is known when a claim is looked at.
//
// stepClaim is a pure function of it, so every case can be tested without a server.
type claimView struct {
	claim *corev1.PersistentVolumeClaim
	// volume is the one that the claim names, nil if there is none of that name.
	volume *corev1.PersistentVolume
	// missed says that another claim had that volume and still names it: it came back, and is that claim's.
	missed bool
	// candidates name the claim, or no claim and are of its class; of interest only while the claim names no volume.
	candidates []*corev1.PersistentVolume
	// class is the claim's, nil if there is none of that name; fallback is the name of the default class, "" if there
	// is none.
	class    *storagev1.StorageClass
	fallback string
	// waiting are the pods that use the claim and have no node.
	waiting []string
	// provisions says whether provisioners are called for.
	provisions bool
}

// stepClaim is what to do next about a claim, by how far its binding has come: bind-completed marks a claim that once
// had its volume; spec.volumeName alone is a wish of a user or a binding that was cut off; without both the claim is
// open.
func stepClaim(s claimView) step {
	if _, bound := s.claim.Annotations[volumebinding.BindCompleted]; bound {
		return s.bound()
	}
	if s.claim.Spec.VolumeName != "" {
		return s.named()
	}
	return s.open()
}

func (s *claimView) tell(kind, reason, format string, args ...any) event {
	return event{s.claim, kind, reason, fmt.Sprintf(format, args...)}
}

// bound is for a claim that had its volume: it keeps it, or is lost for good. A lost claim never gets another volume:
// an empty one in the place of the data would look like a success.
func (s *claimView) bound() step {
	lost := func(reason, text string) step {
		next, _ := claimPhase(s.claim, corev1.ClaimLost, s.tell(corev1.EventTypeWarning, reason, "%s", text))
		return next
	}
	switch v := s.volume; {
	case s.claim.Spec.VolumeName == "":
		return lost("ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
	case v == nil:
		return lost("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
	case v.Spec.ClaimRef != nil && !volumebinding.Meant(v, s.claim):
		return lost("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")
	// Everything is written again that a crash or a user's hand may have left undone; bind returns no write if nothing
	// is.
	default:
		return bind(v, s.claim)
	}
}

// named is for a claim that names a volume that it does not have yet.
//
// The volume must offer what the claim asks for, also when a user chose it; only the claim's selector is not looked at.
func (s *claimView) named() step {
	v := s.volume
	switch {
	case v == nil:
		return s.pending()
	case v.Spec.ClaimRef == nil && !s.missed:
		if why := volumebinding.Mismatch(v, s.claim); why != "" {
			return s.pending(s.tell(corev1.EventTypeWarning, "VolumeMismatch", "Cannot bind to requested volume %q: %s",
				v.Name, why))
		}
		return bind(v, s.claim)
	case volumebinding.Meant(v, s.claim):
		return bind(v, s.claim)
	default:
		return s.pending(s.tell(corev1.EventTypeWarning, "FailedBinding",
			"volume %q already bound to a different claim.", v.Name))
	}
}

// open is for a claim that takes what there is. One that is being deleted is given nothing any more.
//
// The order is: a volume that fits; the default class for a claim that names none, which may let it be provisioned;
// waiting for a pod, if the class binds with the first consumer; the class's provisioner.
func (s *claimView) open() step {
	c := s.claim
	if c.DeletionTimestamp != nil {
		return step{}
	}
	_, triggered := c.Annotations[volumebinding.SelectedNode]
	delayed := s.class != nil &&
		ptr.Deref(s.class.VolumeBindingMode, storagev1.VolumeBindingImmediate) ==
			storagev1.VolumeBindingWaitForFirstConsumer
	if v := s.choose(delayed); v != nil {
		return bind(v, c)
	}
	if s.fallback != "" && classless(c) {
		c = c.DeepCopy()
		c.Spec.StorageClassName = &s.fallback
		return step{change: &change{claim: c, givesClass: true}}
	}
	switch {
	case delayed && !triggered && len(s.waiting) == 1:
		return s.pending(s.tell(corev1.EventTypeNormal, "WaitForPodScheduled", "waiting for pod %s to be scheduled",
			s.waiting[0]))
	case delayed && !triggered && len(s.waiting) > 1:
		return s.pending(s.tell(corev1.EventTypeNormal, "WaitForPodScheduled", "waiting for pods %s to be scheduled",
			strings.Join(s.waiting, ",")))
	case delayed && !triggered:
		return s.pending(s.tell(corev1.EventTypeNormal, "WaitForFirstConsumer",
			"waiting for first consumer to be created before binding"))
	case core.ClaimClass(c) != "":
		return s.provision()
	default:
		return s.pending(s.tell(corev1.EventTypeNormal, "FailedBinding",
			"no persistent volumes available for this claim and no storage class is set"))
	}
}

// classless reports whether a claim says nothing of its class, not even that it wants none.
func classless(c *corev1.PersistentVolumeClaim) bool {
	_, annotated := c.Annotations[corev1.BetaStorageClassAnnotation]
	return c.Spec.StorageClassName == nil && !annotated
}

// choose returns a volume that names the claim, else the best of those that it may have, else nil. Where the binding is
// delayed, the scheduler chooses, and the volume names the claim then.
//
// The best has the fewest access modes and then the least capacity, so that what offers more is left for claims that
// need it (volumebinding.Better).
func (s *claimView) choose(delayed bool) *corev1.PersistentVolume {
	var best *corev1.PersistentVolume
	for _, v := range s.candidates {
		if volumebinding.Answers(v, s.claim) {
			return v
		}
		if !delayed && volumebinding.Claimable(v, s.claim) && (best == nil || volumebinding.Better(v, best)) {
			best = v
		}
	}
	return best
}

// provision asks the class's provisioner, which is a program of its own, for a volume: it reads the annotation, and
// makes a volume that names the claim.
//
// Both annotations are written, the present one and its beta predecessor, because provisioners of either age read them.
//
// A provisioner that does not exist is no error here: it may be installed later, and the event repeats until then.
func (s *claimView) provision() step {
	failed := func(format string, args ...any) step {
		return s.pending(s.tell(corev1.EventTypeWarning, "ProvisioningFailed", format, args...))
	}
	switch {
	case !s.provisions:
		return s.pending()
	case s.class == nil:
		return failed("storageclass.storage.k8s.io %q not found", core.ClaimClass(s.claim))
	case inTree(s.class.Provisioner):
		return failed("no volume plugin matched name: %s", s.class.Provisioner)
	}
	by := s.class.Provisioner
	if s.claim.Annotations[volumebinding.StorageProvisioner] != by ||
		s.claim.Annotations[volumebinding.BetaStorageProvisioner] != by {
		c := s.claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, volumebinding.StorageProvisioner, by)
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, volumebinding.BetaStorageProvisioner, by)
		return writeClaim(c)
	}
	return s.pending(s.tell(corev1.EventTypeNormal, "ExternalProvisioning",
		"Waiting for a volume to be created either by the external provisioner '%s' or manually by the system administrator. "+
			"If volume creation is delayed, please verify that the provisioner is running and correctly registered.",
		by))
}

// inTree reports whether a name is of those that only Kubernetes gives: to provisioners that were part of it, and to
// none at all.
func inTree(provisioner string) bool { return strings.HasPrefix(provisioner, "kubernetes.io/") }

// pending is the step of a claim that waits: its phase, and events that say why.
//
// The phase comes first, in a step of its own; the events follow in the next, and again in every period.
func (s *claimView) pending(why ...event) step {
	if next, changed := claimPhase(s.claim, corev1.ClaimPending); changed {
		return next
	}
	return step{events: why, awaits: true}
}
