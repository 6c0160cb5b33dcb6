package volumes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Deprecated tells of a pod's volume on storage that nothing mounts any more; at is the volume's path.
func Deprecated(v *corev1.VolumeSource, at *field.Path) []string {
	switch {
	case v.GitRepo != nil:
		return []string{fmt.Sprintf("%s: deprecated in v1.11, and disabled by default in v1.33+", at.Child("gitRepo"))}
	case v.PhotonPersistentDisk != nil:
		return gone(at, "photonPersistentDisk", "v1.11", "v1.16")
	case v.ScaleIO != nil:
		return gone(at, "scaleIO", "v1.16", "v1.22")
	case v.Flocker != nil:
		return gone(at, "flocker", "v1.22", "v1.25")
	case v.Quobyte != nil:
		return gone(at, "quobyte", "v1.22", "v1.25")
	case v.StorageOS != nil:
		return gone(at, "storageOS", "v1.22", "v1.25")
	case v.Glusterfs != nil:
		return gone(at, "glusterfs", "v1.25", "v1.26")
	case v.RBD != nil:
		return gone(at, "rbd", "v1.28", "v1.31")
	case v.CephFS != nil:
		return gone(at, "cephfs", "v1.28", "v1.31")
	}
	return nil
}

// DeprecatedPersistent is Deprecated for a PersistentVolume, whose Flocker and Quobyte upstream does not speak of; at is the spec's path.
func DeprecatedPersistent(v *corev1.PersistentVolumeSource, at *field.Path) []string {
	switch {
	case v.PhotonPersistentDisk != nil:
		return gone(at, "photonPersistentDisk", "v1.11", "v1.16")
	case v.ScaleIO != nil:
		return gone(at, "scaleIO", "v1.16", "v1.22")
	case v.StorageOS != nil:
		return gone(at, "storageOS", "v1.22", "v1.25")
	case v.Glusterfs != nil:
		return gone(at, "glusterfs", "v1.25", "v1.26")
	case v.RBD != nil:
		return gone(at, "rbd", "v1.28", "v1.31")
	case v.CephFS != nil:
		return gone(at, "cephfs", "v1.28", "v1.31")
	}
	return nil
}

func gone(at *field.Path, name, deprecated, since string) []string {
	return []string{fmt.Sprintf("%s: deprecated in %s, non-functional in %s+", at.Child(name), deprecated, since)}
}
