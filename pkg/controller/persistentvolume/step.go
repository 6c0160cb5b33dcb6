package persistentvolume

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"bonsai/api/core/volumebinding"
	"bonsai/pkg/apiclient"
)

// step is what to do next about a claim or a volume: one write at most, after which everything is judged again. There
// is no plan of several writes that could be cut in two.
type step struct {
	change *change
	// events are recorded once the change is written, or at once if there is none.
	events []event
	// awaits says that something is missing which may come without being seen: it is looked for again.
	awaits bool
	// claim asks for the volume's claim to be looked at: the rest of the binding is its matter.
	claim bool
}

// change is one object as it is to be, the volume or the claim; of it the status alone or the rest alone.
//
// Update ignores a status, and UpdateStatus the rest, so one write can never do both.
type change struct {
	volume *corev1.PersistentVolume
	claim  *corev1.PersistentVolumeClaim
	status bool
	// givesClass notes that a claim without a class gets the default one.
	givesClass bool
}

// event is an Event about an object.
type event struct {
	on           apiclient.Object
	kind, reason string
	text         string
}

func writeVolume(v *corev1.PersistentVolume) step { return step{change: &change{volume: v}} }

func writeClaim(c *corev1.PersistentVolumeClaim) step { return step{change: &change{claim: c}} }

// phase is the write that brings a volume into a phase, told by events; ok is false if it is there.
func phase(v *corev1.PersistentVolume, to corev1.PersistentVolumePhase, message string, events ...event) (step, bool) {
	if v.Status.Phase == to {
		return step{}, false
	}
	v = v.DeepCopy()
	v.Status.Phase, v.Status.Message = to, message
	return step{change: &change{volume: v, status: true}, events: events}, true
}

// claimPhase is the write that gives a claim without a volume its phase; ok is false if the claim has it.
func claimPhase(c *corev1.PersistentVolumeClaim, to corev1.PersistentVolumeClaimPhase, events ...event) (step, bool) {
	want := c.Status.DeepCopy()
	want.Phase, want.AccessModes, want.Capacity = to, nil, nil
	return claimStatus(c, want, events...)
}

func claimStatus(c *corev1.PersistentVolumeClaim, want *corev1.PersistentVolumeClaimStatus, events ...event) (step,
	bool) {
	if apiequality.Semantic.DeepEqual(&c.Status, want) {
		return step{}, false
	}
	c = c.DeepCopy()
	c.Status = *want
	return step{change: &change{claim: c, status: true}, events: events}, true
}

// bind is the next write of those that bind a claim to a volume, in the order in which no crash between them loses the
// binding: the volume names the claim, and from then on no other claim gets it; the volume is Bound; the claim names
// the volume; the claim is Bound.
//
// The volume goes first because it is the scarce one: its resourceVersion decides between two claims. A claim that
// named the volume first could lose it to another, and would have to be undone.
func bind(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) step {
	if v, changed := volumebinding.Bind(v, c); changed {
		return writeVolume(v)
	}
	if s, changed := phase(v, corev1.VolumeBound, ""); changed {
		return s
	}
	if c, changed := volumebinding.Complete(c, v); changed {
		return writeClaim(c)
	}
	want := c.Status.DeepCopy()
	want.Phase, want.AccessModes = corev1.ClaimBound, v.Spec.AccessModes
	if c.Status.Phase != corev1.ClaimBound {
		// Later they may differ: the file system of a volume that grew may not have yet, and attributes are changed by
		// their driver.
		want.Capacity, want.CurrentVolumeAttributesClassName = v.Spec.Capacity, v.Spec.VolumeAttributesClassName
	}
	s, _ := claimStatus(c, want)
	return s
}
