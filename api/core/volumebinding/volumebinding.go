// Package volumebinding is what the binding of claims and persistent volumes says in objects, for all who take part in
// it: the controller that binds, the scheduler that chooses a node and with it a volume, and those who provision. All
// of it is in the two objects, so that each of them may be killed at any time: the volume names its claim first, then
// the claim its volume.
package volumebinding

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"bonsai/api/core"
)

// Annotations of claims and volumes (https://kubernetes.io/docs/reference/labels-annotations-taints/).
const (
	// BindCompleted marks a claim that was bound once: without its volume it is lost, it does not get another one. Any
	// value.
	BindCompleted = "pv.kubernetes.io/bind-completed"
	// BoundByController marks the side of a binding that a controller chose, so that it may be undone. Any value.
	BoundByController = "pv.kubernetes.io/bound-by-controller"
	// SelectedNode names, on a claim, the node for which a volume is to be provisioned.
	SelectedNode = "volume.kubernetes.io/selected-node"
	// StorageProvisioner and its beta name who is to provision a volume for the claim.
	StorageProvisioner     = "volume.kubernetes.io/storage-provisioner"
	BetaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner"
	// ProvisionedBy names, on a volume, who provisioned it and so deletes it.
	ProvisionedBy = "pv.kubernetes.io/provisioned-by"
)

// Finalizers of objects that must not go while they are used.
const (
	ClaimProtection      = "kubernetes.io/pvc-protection"
	VolumeProtection     = "kubernetes.io/pv-protection"
	AttributesProtection = "kubernetes.io/vac-protection"
)

// NoProvisioner is the provisioner of classes whose volumes somebody makes by hand.
const NoProvisioner = "kubernetes.io/no-provisioner"

// Meant reports whether a volume names the claim: one of that name and, if it says so, of that UID.
func Meant(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) bool {
	r := v.Spec.ClaimRef
	return r != nil && r.Namespace == c.Namespace && r.Name == c.Name && (r.UID == "" || r.UID == c.UID)
}

// Bind returns the volume as it names the claim, and whether that is another than it was. A volume that did not name it
// before was chosen, which BoundByController notes.
func Bind(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, bool) {
	if Meant(v, c) && v.Spec.ClaimRef.UID == c.UID {
		return v, false
	}
	out := v.DeepCopy()
	if !Meant(v, c) {
		annotate(&out.ObjectMeta, BoundByController, "yes")
	}
	out.Spec.ClaimRef = &corev1.ObjectReference{
		APIVersion: corev1.SchemeGroupVersion.String(), Kind: "PersistentVolumeClaim",
		Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion,
	}
	return out, true
}

// Complete returns the claim as it names the volume and is done, and whether that is another than it was.
func Complete(c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, bool) {
	_, done := c.Annotations[BindCompleted]
	if done && c.Spec.VolumeName == v.Name {
		return c, false
	}
	out := c.DeepCopy()
	if c.Spec.VolumeName != v.Name {
		annotate(&out.ObjectMeta, BoundByController, "yes")
		out.Spec.VolumeName = v.Name
	}
	annotate(&out.ObjectMeta, BindCompleted, "yes")
	return out, true
}

// Unbind returns the volume without its claim: a claim that was chosen for it goes, of one that a user wrote only the
// UID.
func Unbind(v *corev1.PersistentVolume) (*corev1.PersistentVolume, bool) {
	if v.Spec.ClaimRef == nil {
		return v, false
	}
	_, chosen := v.Annotations[BoundByController]
	if !chosen && v.Spec.ClaimRef.UID == "" {
		return v, false
	}
	out := v.DeepCopy()
	if chosen {
		out.Spec.ClaimRef = nil
		delete(out.Annotations, BoundByController)
	} else {
		out.Spec.ClaimRef.UID = ""
	}
	return out, true
}

func annotate(m *metav1.ObjectMeta, key, value string) {
	m.Annotations = maps.Clone(m.Annotations)
	metav1.SetMetaDataAnnotation(m, key, value)
}

// Mismatch says in upstream's words why a volume cannot be what a claim asks for, "" if it can. The claim's selector is
// not asked: a user may name a volume that it does not select.
func Mismatch(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) string {
	has, asks := v.Spec.Capacity[corev1.ResourceStorage], c.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case has.Cmp(asks) < 0:
		return "requested PV is too small"
	case core.VolumeClass(v) != core.ClaimClass(c):
		return "storageClassName does not match"
	case ptr.Deref(v.Spec.VolumeAttributesClassName, "") != ptr.Deref(c.Spec.VolumeAttributesClassName, ""):
		return "volumeAttributesClassName does not match"
	case ModesDiffer(v, c):
		return "incompatible volumeMode"
	case !offers(v, c):
		return "incompatible accessMode"
	}
	return ""
}

// Answers reports whether a volume that names the claim can be the claim's. Its class may be another: who names the
// claim means it.
func Answers(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) bool {
	if v.DeletionTimestamp != nil || !Meant(v, c) {
		return false
	}
	of := *c
	of.Annotations, of.Spec.StorageClassName = nil, ptr.To(core.VolumeClass(v))
	return Mismatch(v, &of) == ""
}

// ModesDiffer reports whether one of the two is a block device and the other a file system.
func ModesDiffer(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) bool {
	return ptr.Deref(v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) !=
		ptr.Deref(c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
}

// offers reports whether the volume has every access mode that the claim wants.
func offers(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) bool {
	for _, want := range c.Spec.AccessModes {
		found := false
		for _, m := range v.Spec.AccessModes {
			found = found || m == want
		}
		if !found {
			return false
		}
	}
	return true
}

// Claimable reports whether a volume that names no claim may become the claim's: it is there to be had, has what is
// asked for and what the claim selects. A claim whose selector cannot be read gets nothing.
func Claimable(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) bool {
	if v.DeletionTimestamp != nil || v.Spec.ClaimRef != nil || v.Status.Phase != corev1.VolumeAvailable ||
		Mismatch(v, c) != "" {
		return false
	}
	if c.Spec.Selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(c.Spec.Selector)
	return err == nil && s.Matches(labels.Set(v.Labels))
}

// Better reports whether volume a is to be taken before b, both being claimable: the one with fewer access modes, then
// the smaller one, then by name, so that two who choose at the same time choose the same.
func Better(a, b *corev1.PersistentVolume) bool {
	if x, y := len(a.Spec.AccessModes), len(b.Spec.AccessModes); x != y {
		return x < y
	}
	x, y := a.Spec.Capacity[corev1.ResourceStorage], b.Spec.Capacity[corev1.ResourceStorage]
	if d := x.Cmp(y); d != 0 {
		return d < 0
	}
	return a.Name < b.Name
}
