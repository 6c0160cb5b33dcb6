package core

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"bonsai/api/defaults"
	"bonsai/api/podspec"
	"bonsai/api/podspec/volumes"
	"bonsai/api/quantity"
	"bonsai/api/resources"
)

// oldMountOptions is the annotation from before spec.mountOptions.
const oldMountOptions = "volume.beta.kubernetes.io/mount-options"

// persistentVolumeRow: now is the clock for the moment at which a volume changes its phase, and may be nil.
func persistentVolumeRow(now func() time.Time) resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("PersistentVolume"), Resource: "persistentvolumes",
		Singular:     "persistentvolume",
		ShortNames:   []string{"pv"},
		StoragePath:  "persistentvolumes",
		New:          resources.Make[corev1.PersistentVolume],
		Strategy:     persistentVolumeStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Status(persistentVolumeStatusStrategy(now).Strategy())},
		Columns:      persistentVolumeColumns(),
		Cells:        resources.Cells(persistentVolumeCells),
	}
}

func persistentVolumeColumns() []metav1.TableColumnDefinition {
	spec, status := corev1.PersistentVolumeSpec{}.SwaggerDoc(), corev1.PersistentVolumeStatus{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		resources.NameColumn(),
		resources.Column("Capacity", spec["capacity"]),
		resources.Column("Access Modes", spec["accessModes"]),
		resources.Column("Reclaim Policy", spec["persistentVolumeReclaimPolicy"]),
		resources.Column("Status", status["phase"]),
		resources.Column("Claim", spec["claimRef"]),
		resources.Column("StorageClass", "StorageClass of the pv"),
		resources.Column("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
		resources.Column("Reason", status["reason"]),
		resources.AgeColumn(),
		resources.Wide(resources.Column("VolumeMode", spec["volumeMode"])),
	}
}

func persistentVolumeCells(v *corev1.PersistentVolume, now time.Time) []any {
	claim := ""
	if r := v.Spec.ClaimRef; r != nil {
		claim = r.Namespace + "/" + r.Name
	}
	phase := string(v.Status.Phase)
	if v.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	return []any{v.Name, quantityText(v.Spec.Capacity), accessModesText(v.Spec.AccessModes),
		string(v.Spec.PersistentVolumeReclaimPolicy), phase,
		claim, VolumeClass(v), orUnset(v.Spec.VolumeAttributesClassName), v.Status.Reason,
		resources.Age(v.CreationTimestamp, now), orUnset(v.Spec.VolumeMode)}
}

// orUnset is the word, "<unset>" for none.
func orUnset[T ~string](word *T) string {
	if word == nil {
		return "<unset>"
	}
	return string(*word)
}

// quantityText is the amount of storage in l, "0" for none.
func quantityText(l corev1.ResourceList) string {
	q := l[corev1.ResourceStorage]
	return q.String()
}

// VolumeClass is the storage class of a volume: the old annotation's before the field's.
func VolumeClass(v *corev1.PersistentVolume) string {
	if class, ok := v.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	return v.Spec.StorageClassName
}

func persistentVolumeStrategy() resources.Typed[*corev1.PersistentVolume] {
	return resources.Typed[*corev1.PersistentVolume]{
		ReturnDeleted: true,
		Default:       defaultPersistentVolume,
		PrepareCreate: func(v *corev1.PersistentVolume) {
			v.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumePending,
				LastPhaseTransitionTime: ptr.To(v.CreationTimestamp)}
		},
		PrepareUpdate:  func(obj, old *corev1.PersistentVolume) { obj.Status = *old.Status.DeepCopy() },
		Validate:       validatePersistentVolume,
		ValidateUpdate: validatePersistentVolumeUpdate,
		Warnings:       persistentVolumeWarnings,
	}
}

// persistentVolumeStatusStrategy is for who binds volumes. A change of the phase has its time, unless the writer gives
// one.
func persistentVolumeStatusStrategy(now func() time.Time) resources.Typed[*corev1.PersistentVolume] {
	s := persistentVolumeStrategy()
	s.PrepareUpdate = func(obj, old *corev1.PersistentVolume) {
		obj.Spec = *old.Spec.DeepCopy()
		was, given := old.Status.LastPhaseTransitionTime, obj.Status.LastPhaseTransitionTime
		switch {
		case obj.Status.Phase == old.Status.Phase && given == nil:
			obj.Status.LastPhaseTransitionTime = was.DeepCopy()
		case obj.Status.Phase != old.Status.Phase && (given == nil || given.Equal(was)) && now != nil:
			obj.Status.LastPhaseTransitionTime = ptr.To(metav1.NewTime(now()).Rfc3339Copy())
		}
	}
	s.ValidateUpdate = func(_, _ *corev1.PersistentVolume) field.ErrorList { return nil }
	s.Warnings = nil
	return s
}

func defaultPersistentVolume(v *corev1.PersistentVolume) {
	s := &v.Spec
	defaults.Set(&v.Status.Phase, corev1.VolumePending)
	defaults.Set(&s.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
	defaults.SetPtr(&s.VolumeMode, corev1.PersistentVolumeFilesystem)
	quantity.RoundUp(s.Capacity)
	volumes.DefaultPersistent(&s.PersistentVolumeSource)
}

// persistentVolumeWarnings tells of what has a better way by now.
func persistentVolumeWarnings(v, _ *corev1.PersistentVolume) []string {
	var w []string
	annotations := field.NewPath("metadata", "annotations")
	if _, ok := v.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		w = append(w, annotations.Key(corev1.BetaStorageClassAnnotation).String()+
			`: deprecated since v1.8; use "storageClassName" attribute instead`)
	}
	if _, ok := v.Annotations[oldMountOptions]; ok {
		w = append(w, annotations.Key(oldMountOptions).String()+
			`: deprecated since v1.31; use "mountOptions" attribute instead`)
	}
	if v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		w = append(w, "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.")
	}
	if a := v.Spec.NodeAffinity; a != nil {
		w = append(w, podspec.SelectorWarnings(a.Required, field.NewPath("spec", "nodeAffinity", "required"))...)
	}
	return append(w, volumes.DeprecatedPersistent(&v.Spec.PersistentVolumeSource, field.NewPath("spec"))...)
}
