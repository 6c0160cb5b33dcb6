package persistentvolume

import (
	corev1 "k8s.io/api/core/v1"

	apicore "bonsai/api/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/podindex"
)

// indices are the ways in which claims, volumes and pods find each other without a look at all of them.
//
// They make a look at one object independent of how many there are; the caches keep them up to date.
type indices struct {
	// volumesByClaim has volumes by the claim that their claimRef names, whatever its UID.
	volumesByClaim controller.Index[*corev1.PersistentVolume]
	// claimsByVolume has claims by the volume that they name.
	claimsByVolume controller.Index[*corev1.PersistentVolumeClaim]
	// unclaimedByClass has volumes without a claimRef, unboundByClass claims without a volume, both by their class.
	unclaimedByClass controller.Index[*corev1.PersistentVolume]
	unboundByClass   controller.Index[*corev1.PersistentVolumeClaim]
	users            podindex.ByClaim
}

func newIndices(claims *controller.Informer[*corev1.PersistentVolumeClaim],
	volumes *controller.Informer[*corev1.PersistentVolume], pods *controller.Informer[*corev1.Pod]) indices {
	return indices{
		volumesByClaim: controller.NewIndex(volumes, "claim", func(v *corev1.PersistentVolume) []string {
			if r := v.Spec.ClaimRef; r != nil {
				return []string{controller.Key{Namespace: r.Namespace, Name: r.Name}.String()}
			}
			return nil
		}),
		claimsByVolume: controller.NewIndex(claims, "volume", func(c *corev1.PersistentVolumeClaim) []string {
			if c.Spec.VolumeName != "" {
				return []string{c.Spec.VolumeName}
			}
			return nil
		}),
		unclaimedByClass: controller.NewIndex(volumes, "class", func(v *corev1.PersistentVolume) []string {
			if v.Spec.ClaimRef == nil {
				return []string{apicore.VolumeClass(v)}
			}
			return nil
		}),
		unboundByClass: controller.NewIndex(claims, "class", func(c *corev1.PersistentVolumeClaim) []string {
			if c.Spec.VolumeName == "" {
				return []string{apicore.ClaimClass(c)}
			}
			return nil
		}),
		users: podindex.NewByClaim(pods),
	}
}

// volumesNaming returns the cached volumes whose claimRef has a claim's name, whatever its UID.
func (x indices) volumesNaming(claim controller.Key) []*corev1.PersistentVolume {
	return x.volumesByClaim.At(claim.String())
}

// claimsNaming returns the cached claims that name a volume.
func (x indices) claimsNaming(volume string) []*corev1.PersistentVolumeClaim {
	return x.claimsByVolume.At(volume)
}

// unclaimed returns the cached volumes of a class that name no claim.
func (x indices) unclaimed(class string) []*corev1.PersistentVolume {
	return x.unclaimedByClass.At(class)
}

// unbound returns the cached claims of a class that name no volume; for "" also the claims that name no class.
func (x indices) unbound(class string) []*corev1.PersistentVolumeClaim {
	return x.unboundByClass.At(class)
}
