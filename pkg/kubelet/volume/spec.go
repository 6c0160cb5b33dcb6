package volume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Spec is what is to be mounted for a volume of a pod. It is read-only.
type Spec struct {
	// Volume is the one of the pod's spec.
	Volume *corev1.Volume
	// PV is the volume that the claim of Volume is bound to, nil where Volume names no claim.
	PV *corev1.PersistentVolume
	// Claim is that claim as it was when the pod began, nil where PV is.
	Claim *corev1.PersistentVolumeClaim
	// ReadOnly: the pod asks for the volume read-only in all its containers.
	ReadOnly bool
}

// VolumeName returns the volume's name on the node and in messages: that of the PersistentVolume, or else the one in
// the pod.
func (s Spec) VolumeName() string {
	if s.PV != nil {
		return s.PV.Name
	}
	return s.Volume.Name
}

// Block reports whether containers get the volume as a device instead of as files.
func (s Spec) Block() bool {
	return s.PV != nil && s.PV.Spec.VolumeMode != nil && *s.PV.Spec.VolumeMode == corev1.PersistentVolumeBlock
}

// MountOptions returns the options that the PersistentVolume asks for, in addition to those that its kind needs.
func (s Spec) MountOptions() []string {
	if s.PV == nil {
		return nil
	}
	return s.PV.Spec.MountOptions
}

// Claims finds the volumes of claims.
type Claims interface {
	// Resolve returns the PersistentVolume that a volume's claim is bound to. It checks that the pod may use both, and
	// that the volume may be used on this node. It asks the API server. The error is shown to the user as it is.
	Resolve(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (Spec, error)
}

// isClaim reports whether a volume is a claim's, named or made for the pod.
func isClaim(v *corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil }
