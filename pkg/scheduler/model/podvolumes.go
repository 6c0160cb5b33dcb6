package model

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
)

// PodClaim is a claim of a pod, in its namespace.
type PodClaim struct {
	Name string
	// Ephemeral claims are made for the pod, by the name of its volume.
	Ephemeral bool
}

// podVolumes picks the volumes that decisions read.
func podVolumes(pod *corev1.Pod) (claims []PodClaim, disks []*corev1.Volume) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			claims = append(claims, PodClaim{Name: v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil:
			claims = append(claims, PodClaim{Name: ephemeral.VolumeClaimName(pod, v), Ephemeral: true})
		case v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.ISCSI != nil || v.RBD != nil:
			disks = append(disks, v)
		}
	}
	return claims, disks
}

// Claims adds the pod's claims.
func (k *Key) Claims(pod *PodInfo) {
	k.Num(int64(len(pod.Claims)))
	if len(pod.Claims) == 0 {
		return
	}
	k.Str(pod.Pod.Namespace)
	for _, c := range pod.Claims {
		k.Str(c.Name)
	}
}

// VolumeAffinity adds where a volume can be used.
func (k *Key) VolumeAffinity(pv *corev1.PersistentVolume) {
	if a := pv.Spec.NodeAffinity; a != nil {
		k.proto(a)
	} else {
		k.Num(-1)
	}
}
