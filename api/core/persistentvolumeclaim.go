package core

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/podspec/volumes"
	"bonsai/api/quantity"
	"bonsai/api/resources"
)

func persistentVolumeClaimRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), Resource: "persistentvolumeclaims",
		Singular:     "persistentvolumeclaim",
		Namespaced:   true,
		ShortNames:   []string{"pvc"},
		StoragePath:  "persistentvolumeclaims",
		New:          resources.Make[corev1.PersistentVolumeClaim],
		Strategy:     volumeClaimStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Status(volumeClaimStatusStrategy().Strategy())},
		Columns:      volumeClaimColumns(),
		Cells:        resources.Cells(volumeClaimCells),
	}
}

func volumeClaimColumns() []metav1.TableColumnDefinition {
	spec, status := corev1.PersistentVolumeClaimSpec{}.SwaggerDoc(), corev1.PersistentVolumeClaimStatus{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		resources.NameColumn(),
		resources.Column("Status", status["phase"]),
		resources.Column("Volume", spec["volumeName"]),
		resources.Column("Capacity", status["capacity"]),
		resources.Column("Access Modes", status["accessModes"]),
		resources.Column("StorageClass", "StorageClass of the pvc"),
		resources.Column("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
		resources.AgeColumn(),
		resources.Wide(resources.Column("VolumeMode", spec["volumeMode"])),
	}
}

func volumeClaimCells(c *corev1.PersistentVolumeClaim, now time.Time) []any {
	phase := string(c.Status.Phase)
	if c.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	capacity, modes := "", ""
	if c.Spec.VolumeName != "" {
		capacity, modes = quantityText(c.Status.Capacity), accessModesText(c.Status.AccessModes)
	}
	return []any{c.Name, phase, c.Spec.VolumeName, capacity, modes, ClaimClass(c),
		orUnset(c.Spec.VolumeAttributesClassName),
		resources.Age(c.CreationTimestamp, now), orUnset(c.Spec.VolumeMode)}
}

// accessModesText names the modes as people do, each once: "RWO,ROX".
func accessModesText(modes []corev1.PersistentVolumeAccessMode) string {
	var words []string
	for _, m := range []struct {
		mode corev1.PersistentVolumeAccessMode
		word string
	}{{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"},
		{corev1.ReadWriteOncePod, "RWOP"}} {
		if slices.Contains(modes, m.mode) {
			words = append(words, m.word)
		}
	}
	return strings.Join(words, ",")
}

// ClaimClass is the storage class that a claim asks for: the old annotation's before the field's; "" is none.
func ClaimClass(c *corev1.PersistentVolumeClaim) string {
	if class, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if c.Spec.StorageClassName != nil {
		return *c.Spec.StorageClassName
	}
	return ""
}

func volumeClaimStrategy() resources.Typed[*corev1.PersistentVolumeClaim] {
	return resources.Typed[*corev1.PersistentVolumeClaim]{
		ReturnDeleted: true,
		Default: func(c *corev1.PersistentVolumeClaim) {
			defaults.Set(&c.Status.Phase, corev1.ClaimPending)
			volumes.DefaultClaim(&c.Spec)
			quantity.RoundUp(c.Status.Capacity)
			quantity.RoundUp(c.Status.AllocatedResources)
		},
		PrepareCreate: func(c *corev1.PersistentVolumeClaim) {
			c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
			dropForeignSources(&c.Spec)
			alignSources(&c.Spec)
		},
		PrepareUpdate: func(obj, old *corev1.PersistentVolumeClaim) {
			obj.Status = *old.Status.DeepCopy()
			if old.Spec.DataSource == nil && old.Spec.DataSourceRef == nil {
				dropForeignSources(&obj.Spec)
			}
			alignSources(&obj.Spec)
		},
		Validate:       validateVolumeClaim,
		ValidateUpdate: validateVolumeClaimUpdate,
		Warnings:       volumeClaimWarnings,
	}
}

func volumeClaimStatusStrategy() resources.Typed[*corev1.PersistentVolumeClaim] {
	s := volumeClaimStrategy()
	s.PrepareUpdate = func(obj, old *corev1.PersistentVolumeClaim) {
		obj.Spec = *old.Spec.DeepCopy()
		if old.Status.HealthStatus == nil { // of a feature that is off by default (CSIVolumeHealth)
			obj.Status.HealthStatus = nil
		}
	}
	s.ValidateUpdate = func(obj, _ *corev1.PersistentVolumeClaim) field.ErrorList {
		return validateVolumeClaimStatus(&obj.Status)
	}
	s.Warnings = nil
	return s
}

// dropForeignSources drops sources that a claim cannot be filled from: dataSource knows only claims and snapshots, and
// a source in another namespace needs a feature that is off by default.
func dropForeignSources(s *corev1.PersistentVolumeClaimSpec) {
	if r := s.DataSourceRef; r != nil && r.Namespace != nil && *r.Namespace != "" {
		s.DataSourceRef = nil
	}
	if d := s.DataSource; d != nil {
		group := ""
		if d.APIGroup != nil {
			group = *d.APIGroup
		}
		if !(d.Kind == "PersistentVolumeClaim" && group == "" ||
			d.Kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io") {
			s.DataSource = nil
		}
	}
}

// alignSources gives the older and the newer field the same source.
func alignSources(s *corev1.PersistentVolumeClaimSpec) {
	switch d, r := s.DataSource, s.DataSourceRef; {
	case d != nil && r == nil:
		s.DataSourceRef = &corev1.TypedObjectReference{APIGroup: d.APIGroup, Kind: d.Kind, Name: d.Name}
	case d == nil && r != nil && (r.Namespace == nil || *r.Namespace == ""):
		s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: r.APIGroup, Kind: r.Kind, Name: r.Name}
	}
}

// volumeClaimWarnings tells of the old annotation and of parts of bytes.
func volumeClaimWarnings(c, _ *corev1.PersistentVolumeClaim) []string {
	var w []string
	if _, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		w = append(w, field.NewPath("metadata", "annotations").Key(corev1.BetaStorageClassAnnotation).String()+
			`: deprecated since v1.8; use "storageClassName" attribute instead`)
	}
	return append(w, volumes.ClaimFractions(&c.Spec, field.NewPath("spec"))...)
}
