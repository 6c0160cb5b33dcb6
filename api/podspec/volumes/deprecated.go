package volumes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/quantity"
)

// gone is a kind of storage that nothing mounts any more: since when it is deprecated, and since when it does nothing.
type gone struct {
	field, deprecated, since string
	inPod                    func(*corev1.VolumeSource) bool
	// inPersistent is nil for those that upstream does not speak of in a PersistentVolume.
	inPersistent func(*corev1.PersistentVolumeSource) bool
}

// allGone are all kinds of such storage.
func allGone() []gone {
	type (
		pod        = *corev1.VolumeSource
		persistent = *corev1.PersistentVolumeSource
	)
	return []gone{
		{"photonPersistentDisk", "v1.11", "v1.16", func(v pod) bool {
			return v.PhotonPersistentDisk != nil
		}, func(v persistent) bool { return v.PhotonPersistentDisk != nil }},
		{"scaleIO", "v1.16", "v1.22", func(v pod) bool {
			return v.ScaleIO != nil
		}, func(v persistent) bool { return v.ScaleIO != nil }},
		{"flocker", "v1.22", "v1.25", func(v pod) bool { return v.Flocker != nil }, nil},
		{"quobyte", "v1.22", "v1.25", func(v pod) bool { return v.Quobyte != nil }, nil},
		{"storageOS", "v1.22", "v1.25", func(v pod) bool {
			return v.StorageOS != nil
		}, func(v persistent) bool { return v.StorageOS != nil }},
		{"glusterfs", "v1.25", "v1.26", func(v pod) bool {
			return v.Glusterfs != nil
		}, func(v persistent) bool { return v.Glusterfs != nil }},
		{"rbd", "v1.28", "v1.31", func(v pod) bool {
			return v.RBD != nil
		}, func(v persistent) bool { return v.RBD != nil }},
		{"cephfs", "v1.28", "v1.31", func(v pod) bool {
			return v.CephFS != nil
		}, func(v persistent) bool { return v.CephFS != nil }},
	}
}

// Warnings tells of a pod's volume on storage that nothing mounts any more, or of fractions of bytes; at is the
// volume's path.
func Warnings(v *corev1.VolumeSource, at *field.Path) []string {
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		return ClaimFractions(&v.Ephemeral.VolumeClaimTemplate.Spec,
			at.Child("ephemeral", "volumeClaimTemplate", "spec"))
	}
	if v.GitRepo != nil {
		return []string{fmt.Sprintf("%s: deprecated in v1.11, and disabled by default in v1.33+", at.Child("gitRepo"))}
	}
	return warn(at, func(g *gone) bool { return g.inPod(v) })
}

// ClaimFractions tells of a claim for no whole number of bytes; at is what its resources are a field of.
func ClaimFractions(s *corev1.PersistentVolumeClaimSpec, at *field.Path) []string {
	w := quantity.Fractions(s.Resources.Requests, corev1.ResourceStorage, at.Child("resources", "requests"))
	return append(w, quantity.Fractions(s.Resources.Limits, corev1.ResourceStorage, at.Child("resources", "limits"))...)
}

// DeprecatedPersistent is Warnings for a PersistentVolume; at is the spec's path.
func DeprecatedPersistent(v *corev1.PersistentVolumeSource, at *field.Path) []string {
	return warn(at, func(g *gone) bool { return g.inPersistent != nil && g.inPersistent(v) })
}

// warn tells of the first that is there.
func warn(at *field.Path, is func(*gone) bool) []string {
	for _, g := range allGone() {
		if is(&g) {
			return []string{fmt.Sprintf("%s: deprecated in %s, non-functional in %s+", at.Child(g.field), g.deprecated,
				g.since)}
		}
	}
	return nil
}
