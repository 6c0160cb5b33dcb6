package controller

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/core"
)

// Indices by which persistent volumes, their claims and the pods that use these find each other.
const (
	// byClaim has pods by the claims that they use, and volumes by the one that they name.
	byClaim = "claim"
	// byVolume has claims by the volume that they name.
	byVolume = "volume"
	// byClass has volumes that name no claim, and claims that name no volume, by their class.
	byClass = "class"
)

// ClaimOf is the name of the claim behind a volume of a pod: one in its namespace that it names, or the one that is
// made for it. "" for all other volumes.
func ClaimOf(p *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return p.Name + "-" + v.Name
	}
	return ""
}

func indexPodByClaim(o any) ([]string, error) {
	var at []string
	p := o.(*corev1.Pod)
	for i := range p.Spec.Volumes {
		if name := ClaimOf(p, &p.Spec.Volumes[i]); name != "" {
			at = append(at, Key{Namespace: p.Namespace, Name: name}.String())
		}
	}
	return at, nil
}

func indexVolumeByClaim(o any) ([]string, error) {
	if r := o.(*corev1.PersistentVolume).Spec.ClaimRef; r != nil {
		return []string{Key{Namespace: r.Namespace, Name: r.Name}.String()}, nil
	}
	return nil, nil
}

func indexUnclaimedByClass(o any) ([]string, error) {
	if v := o.(*corev1.PersistentVolume); v.Spec.ClaimRef == nil {
		return []string{core.VolumeClass(v)}, nil
	}
	return nil, nil
}

func indexByVolume(o any) ([]string, error) {
	if v := o.(*corev1.PersistentVolumeClaim).Spec.VolumeName; v != "" {
		return []string{v}, nil
	}
	return nil, nil
}

func indexUnboundByClass(o any) ([]string, error) {
	if c := o.(*corev1.PersistentVolumeClaim); c.Spec.VolumeName == "" {
		return []string{core.ClaimClass(c)}, nil
	}
	return nil, nil
}

// PodsUsing returns the cached pods that use a claim, whatever their state.
func PodsUsing(pods *Informer[*corev1.Pod], claim Key) []*corev1.Pod {
	all, _ := pods.store.ByIndex(byClaim, claim.String())
	return cast[*corev1.Pod](all)
}

// VolumesNaming returns the cached volumes whose claimRef has a claim's name, whatever its UID.
func VolumesNaming(volumes *Informer[*corev1.PersistentVolume], claim Key) []*corev1.PersistentVolume {
	all, _ := volumes.store.ByIndex(byClaim, claim.String())
	return cast[*corev1.PersistentVolume](all)
}

// Unclaimed returns the cached volumes of a class that name no claim.
func Unclaimed(volumes *Informer[*corev1.PersistentVolume], class string) []*corev1.PersistentVolume {
	all, _ := volumes.store.ByIndex(byClass, class)
	return cast[*corev1.PersistentVolume](all)
}

// ClaimsNaming returns the cached claims that name a volume.
func ClaimsNaming(claims *Informer[*corev1.PersistentVolumeClaim], volume string) []*corev1.PersistentVolumeClaim {
	all, _ := claims.store.ByIndex(byVolume, volume)
	return cast[*corev1.PersistentVolumeClaim](all)
}

// Unbound returns the cached claims of a class that name no volume; for "" also those that say nothing of their class.
func Unbound(claims *Informer[*corev1.PersistentVolumeClaim], class string) []*corev1.PersistentVolumeClaim {
	all, _ := claims.store.ByIndex(byClass, class)
	return cast[*corev1.PersistentVolumeClaim](all)
}
