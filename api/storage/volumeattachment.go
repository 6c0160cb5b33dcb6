package storage

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/core"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

func volumeAttachmentRow() resources.Row {
	spec, status := storagev1.VolumeAttachmentSpec{}.SwaggerDoc(), storagev1.VolumeAttachmentStatus{}.SwaggerDoc()
	attacher, attached := resources.Column("Attacher", spec["attacher"]),
		resources.Column("Attached", status["attached"])
	attacher.Format, attached.Type = "name", "boolean"
	return resources.Row{
		GVK: storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"), Resource: "volumeattachments",
		Singular:     "volumeattachment",
		StoragePath:  "volumeattachments",
		New:          resources.Make[storagev1.VolumeAttachment],
		Strategy:     volumeAttachmentStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Status(volumeAttachmentStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			attacher,
			resources.Column("PV", storagev1.VolumeAttachmentSource{}.SwaggerDoc()["persistentVolumeName"]),
			resources.Column("Node", spec["nodeName"]),
			attached,
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(a *storagev1.VolumeAttachment, now time.Time) []any {
			volume := ""
			if n := a.Spec.Source.PersistentVolumeName; n != nil {
				volume = *n
			}
			return []any{a.Name, a.Spec.Attacher, volume, a.Spec.NodeName, a.Status.Attached,
				resources.Age(a.CreationTimestamp, now)}
		}),
	}
}

func volumeAttachmentStrategy() resources.Typed[*storagev1.VolumeAttachment] {
	return resources.Typed[*storagev1.VolumeAttachment]{
		NeedsVersion:   true,
		ReturnDeleted:  true,
		PrepareCreate:  func(a *storagev1.VolumeAttachment) { a.Status = storagev1.VolumeAttachmentStatus{} },
		PrepareUpdate:  func(obj, old *storagev1.VolumeAttachment) { obj.Status = *old.Status.DeepCopy() },
		Validate:       validateVolumeAttachment,
		ValidateUpdate: validateVolumeAttachmentUpdate,
	}
}

func volumeAttachmentStatusStrategy() resources.Typed[*storagev1.VolumeAttachment] {
	s := volumeAttachmentStrategy()
	s.PrepareUpdate = func(obj, old *storagev1.VolumeAttachment) {
		obj.Spec = *old.Spec.DeepCopy()
		metav1.ResetObjectMetaForStatus(&obj.ObjectMeta, &old.ObjectMeta)
	}
	s.Resets = []string{"spec", "metadata"}
	return s
}

// Bounds of an attachment's status. The bound of all metadata counts keys and values together, in bytes.
const (
	maxErrorMessage = 1024
	maxMetadata     = 256 << 10
)

func validateVolumeAttachment(a *storagev1.VolumeAttachment) field.ErrorList {
	spec, status := field.NewPath("spec"), field.NewPath("status")
	errs := validateAttacher(a.Spec.Attacher, spec.Child("attacher"))
	errs = append(errs, validateSource(&a.Spec.Source, spec.Child("source"))...)
	errs = append(errs, validate.Invalid(spec.Child("nodeName"), a.Spec.NodeName,
		apivalidation.NameIsDNSSubdomain(a.Spec.NodeName, false))...)
	size := 0
	for k, v := range a.Status.AttachmentMetadata {
		size += len(k) + len(v)
	}
	if size > maxMetadata {
		errs = append(errs, field.TooLong(status.Child("attachmentMetadata"), "", maxMetadata))
	}
	for name, e := range map[string]*storagev1.VolumeError{"attachError": a.Status.AttachError,
		"detachError": a.Status.DetachError} {
		if e != nil && len(e.Message) > maxErrorMessage {
			errs = append(errs, field.TooLong(status.Child(name, "message"), "", maxErrorMessage))
		}
	}
	return errs
}

// validateAttacher checks the name of a driver, whose letters may be capital.
func validateAttacher(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if len(name) > maxDriverName {
		return field.ErrorList{field.TooLongCharacters(path, "", maxDriverName)}
	}
	return validate.Invalid(path, name, content.IsDNS1123SubdomainCaseless(name))
}

func validateSource(s *storagev1.VolumeAttachmentSource, path *field.Path) field.ErrorList {
	const one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
	switch name := s.PersistentVolumeName; {
	case name == nil && s.InlineVolumeSpec == nil:
		return field.ErrorList{field.Required(path, one)}
	case name != nil && s.InlineVolumeSpec != nil:
		return field.ErrorList{field.Forbidden(path, one)}
	case name != nil:
		at := path.Child("persistentVolumeName")
		var errs field.ErrorList
		if *name == "" {
			errs = append(errs, field.Required(at, "must specify non empty persistentVolumeName"))
		}
		return append(errs, validate.Invalid(at, *name, apivalidation.NameIsDNSSubdomain(*name, false))...)
	}
	return validateInline(s.InlineVolumeSpec, path.Child("inlineVolumeSpec"))
}

// validateInline: what a pod brings along has the form of a persistent volume of a CSI driver, without what says how it
// is kept.
func validateInline(s *corev1.PersistentVolumeSpec, path *field.Path) field.ErrorList {
	errs := core.ValidateVolumeSource(s, path)
	forbid := func(name string, is bool, why string) {
		if is {
			errs = append(errs, field.Forbidden(path.Child(name), why+" in the context of inline volumes"))
		}
	}
	const not = "may not be specified"
	forbid("persistentVolumeReclaimPolicy",
		s.PersistentVolumeReclaimPolicy != "" &&
			s.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain, "may only be Retain")
	forbid("volumeMode", s.VolumeMode != nil && *s.VolumeMode != corev1.PersistentVolumeFilesystem,
		"may not specify volumeMode other than Filesystem")
	forbid("nodeAffinity", s.NodeAffinity != nil, not)
	forbid("claimRef", s.ClaimRef != nil, not)
	forbid("capacity", len(s.Capacity) > 0, not)
	forbid("storageClassName", s.StorageClassName != "", not)
	if s.CSI == nil {
		errs = append(errs, field.Required(path.Child("csi"), "has to be specified in the context of inline volumes"))
	}
	return errs
}

func validateVolumeAttachmentUpdate(obj, old *storagev1.VolumeAttachment) field.ErrorList {
	return append(validateVolumeAttachment(obj), validate.Immutable(obj.Spec, old.Spec, field.NewPath("spec"))...)
}
