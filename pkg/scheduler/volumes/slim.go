package volumes

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/core/volumebinding"
)

// meta keeps of an object's metadata what is read here: the annotations of binding and classes.
//
// A cluster can have as many claims as pods, and the scheduler keeps all of them.
func meta(m metav1.ObjectMeta) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Labels:            m.Labels,
		DeletionTimestamp: m.DeletionTimestamp, OwnerReferences: m.OwnerReferences}
	for _, key := range []string{volumebinding.BindCompleted, volumebinding.BoundByController,
		volumebinding.SelectedNode, corev1.BetaStorageClassAnnotation} {
		if value, ok := m.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&out, key, value)
		}
	}
	return out
}

// SlimClaim drops from a fresh claim what no decision reads, in place.
func SlimClaim(c *corev1.PersistentVolumeClaim) {
	c.ObjectMeta = meta(c.ObjectMeta)
	c.Status = corev1.PersistentVolumeClaimStatus{Phase: c.Status.Phase}
}

// SlimVolume drops from a fresh volume what no decision reads, in place.
func SlimVolume(v *corev1.PersistentVolume) {
	s := &v.Spec
	slim := corev1.PersistentVolumeSpec{Capacity: s.Capacity, AccessModes: s.AccessModes, ClaimRef: s.ClaimRef,
		StorageClassName: s.StorageClassName,
		VolumeMode:       s.VolumeMode, NodeAffinity: s.NodeAffinity,
		VolumeAttributesClassName: s.VolumeAttributesClassName}
	if s.CSI != nil {
		slim.CSI = &corev1.CSIPersistentVolumeSource{Driver: s.CSI.Driver, VolumeHandle: s.CSI.VolumeHandle}
	}
	v.ObjectMeta, v.Spec, v.Status = meta(v.ObjectMeta), slim, corev1.PersistentVolumeStatus{Phase: v.Status.Phase}
}

// SlimAttachment drops from a fresh attachment what no decision reads, in place.
func SlimAttachment(a *storagev1.VolumeAttachment) {
	*a = storagev1.VolumeAttachment{ObjectMeta: meta(a.ObjectMeta),
		Spec: storagev1.VolumeAttachmentSpec{Attacher: a.Spec.Attacher, NodeName: a.Spec.NodeName,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: a.Spec.Source.PersistentVolumeName}}}
}

// SlimClass drops from a fresh class what no decision reads, in place.
func SlimClass(c *storagev1.StorageClass) {
	*c = storagev1.StorageClass{ObjectMeta: meta(c.ObjectMeta), Provisioner: c.Provisioner,
		VolumeBindingMode: c.VolumeBindingMode, AllowedTopologies: c.AllowedTopologies}
}
