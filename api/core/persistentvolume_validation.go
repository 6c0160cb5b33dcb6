package core

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxDriverName is how long the name of a CSI driver may be.
const maxDriverName = 63

func validatePersistentVolume(v *corev1.PersistentVolume) field.ErrorList {
	s, at := &v.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), ""))
	}
	errs = append(errs, validateAccessModes(s.AccessModes, at.Child("accessModes"))...)
	errs = append(errs, validateCapacity(s.Capacity, at.Child("capacity"))...)
	errs = append(errs, oneOfOrEmpty(at.Child("persistentVolumeReclaimPolicy"), s.PersistentVolumeReclaimPolicy,
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)...)
	errs = append(errs, validateVolumeAffinity(s, at)...)
	errs = append(errs, validatePersistentSource(s, at)...)
	if s.HostPath != nil && path.Clean(s.HostPath.Path) == "/" && s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		errs = append(errs, field.Forbidden(at.Child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'"))
	}
	if s.StorageClassName != "" {
		errs = append(errs, invalid(at.Child("storageClassName"), s.StorageClassName, apivalidation.NameIsDNSSubdomain(s.StorageClassName, false))...)
	}
	errs = append(errs, validateVolumeMode(s.VolumeMode, at.Child("volumeMode"))...)
	return append(errs, validateVolumeAttributes(s, at)...)
}

func validateAccessModes(modes []corev1.PersistentVolumeAccessMode, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	single, others := false, false
	for _, m := range modes {
		switch m {
		case corev1.ReadWriteOncePod:
			single = true
		case corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce:
			others = true
		default:
			errs = append(errs, field.NotSupported(path, m, []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod}))
		}
	}
	if single && others {
		errs = append(errs, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}

// validateCapacity: a volume has storage, and nothing else.
func validateCapacity(l corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(l) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	if _, ok := l[corev1.ResourceStorage]; !ok || len(l) > 1 {
		errs = append(errs, field.NotSupported(path, l, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	for _, name := range sortedNames(l) {
		q := l[name]
		errs = append(errs, validateAmount(name, l, path)...)
		if q.Sign() <= 0 {
			errs = append(errs, field.Invalid(path.Key(string(name)), q.String(), "must be greater than zero"))
		}
	}
	return errs
}

// validateAmount: what a volume has is not negative.
func validateAmount(name corev1.ResourceName, l corev1.ResourceList, path *field.Path) field.ErrorList {
	q := l[name]
	if q.Value() < 0 {
		return field.ErrorList{field.Invalid(path.Key(string(name)), q.Value(), "must be a valid resource quantity")}
	}
	return nil
}

func validateVolumeMode(m *corev1.PersistentVolumeMode, path *field.Path) field.ErrorList {
	if m == nil || *m == corev1.PersistentVolumeBlock || *m == corev1.PersistentVolumeFilesystem {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *m, []corev1.PersistentVolumeMode{corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem})}
}

// validateVolumeAffinity: a volume that is local to a node says which.
func validateVolumeAffinity(s *corev1.PersistentVolumeSpec, path *field.Path) field.ErrorList {
	at := path.Child("nodeAffinity")
	switch {
	case s.NodeAffinity == nil && s.Local != nil:
		return field.ErrorList{field.Required(at, "Local volume requires node affinity")}
	case s.NodeAffinity == nil:
		return nil
	case s.NodeAffinity.Required == nil:
		return field.ErrorList{field.Required(at.Child("required"), "must specify required node constraints")}
	}
	return ValidateNodeSelector(s.NodeAffinity.Required, at.Child("required"))
}

func validateVolumeAttributes(s *corev1.PersistentVolumeSpec, path *field.Path) field.ErrorList {
	class, at := s.VolumeAttributesClassName, path.Child("volumeAttributesClassName")
	if class == nil {
		return nil
	}
	var errs field.ErrorList
	if *class == "" {
		errs = append(errs, field.Required(at, "an empty string is disallowed"))
	} else {
		errs = append(errs, invalid(at, *class, apivalidation.NameIsDNSSubdomain(*class, false))...)
	}
	if s.CSI == nil {
		errs = append(errs, field.Required(path.Child("csi"), "has to be specified when using volumeAttributesClassName"))
	}
	return errs
}

// validatePersistentSource checks that there is exactly one source, and that source as one of a pod's own volumes.
func validatePersistentSource(s *corev1.PersistentVolumeSpec, path *field.Path) field.ErrorList {
	source := podSource(&s.PersistentVolumeSource)
	checks := []volumeCheck{
		{"hostPath", s.HostPath != nil, func(p *field.Path) field.ErrorList { return validateHostPath(s.HostPath, p) }},
		{"nfs", s.NFS != nil, func(p *field.Path) field.ErrorList { return validateNFS(s.NFS, p) }},
	}
	checks = append(checks, diskChecks(source)...)
	checks = append(checks,
		volumeCheck{"local", s.Local != nil, func(p *field.Path) field.ErrorList {
			return append(required(p.Child("path"), s.Local.Path), noBacksteps(s.Local.Path, p.Child("path"))...)
		}},
		volumeCheck{"csi", s.CSI != nil, func(p *field.Path) field.ErrorList { return validateCSI(s.CSI, p) }})
	return validateOneSource(checks, path)
}

// podSource is the source as a pod would have it, as far as checks of the disks look at it.
func podSource(s *corev1.PersistentVolumeSource) *corev1.VolumeSource {
	out := &corev1.VolumeSource{
		GCEPersistentDisk: s.GCEPersistentDisk, AWSElasticBlockStore: s.AWSElasticBlockStore, FC: s.FC, Flocker: s.Flocker,
		VsphereVolume: s.VsphereVolume, Quobyte: s.Quobyte, AzureDisk: s.AzureDisk, PhotonPersistentDisk: s.PhotonPersistentDisk,
		PortworxVolume: s.PortworxVolume,
	}
	if v := s.Glusterfs; v != nil {
		out.Glusterfs = &corev1.GlusterfsVolumeSource{EndpointsName: v.EndpointsName, Path: v.Path}
	}
	if v := s.RBD; v != nil {
		out.RBD = &corev1.RBDVolumeSource{CephMonitors: v.CephMonitors, RBDImage: v.RBDImage}
	}
	if v := s.ISCSI; v != nil {
		out.ISCSI = &corev1.ISCSIVolumeSource{TargetPortal: v.TargetPortal, IQN: v.IQN}
	}
	if v := s.Cinder; v != nil {
		out.Cinder = &corev1.CinderVolumeSource{VolumeID: v.VolumeID}
	}
	if v := s.CephFS; v != nil {
		out.CephFS = &corev1.CephFSVolumeSource{Monitors: v.Monitors}
	}
	if v := s.FlexVolume; v != nil {
		out.FlexVolume = &corev1.FlexVolumeSource{Driver: v.Driver}
	}
	if v := s.AzureFile; v != nil {
		out.AzureFile = &corev1.AzureFileVolumeSource{SecretName: v.SecretName, ShareName: v.ShareName}
	}
	if v := s.ScaleIO; v != nil {
		out.ScaleIO = &corev1.ScaleIOVolumeSource{Gateway: v.Gateway, System: v.System, VolumeName: v.VolumeName}
	}
	if v := s.StorageOS; v != nil {
		out.StorageOS = &corev1.StorageOSVolumeSource{VolumeName: v.VolumeName}
	}
	return out
}

func validateCSI(s *corev1.CSIPersistentVolumeSource, path *field.Path) field.ErrorList {
	at := path.Child("driver")
	errs := required(at, s.Driver)
	if len(s.Driver) > maxDriverName {
		errs = append(errs, field.TooLong(at, "", maxDriverName))
	}
	if s.Driver != "" {
		errs = append(errs, invalid(at, s.Driver, validation.IsDNS1123Subdomain(strings.ToLower(s.Driver)))...)
	}
	errs = append(errs, required(path.Child("volumeHandle"), s.VolumeHandle)...)
	for _, r := range []struct {
		name string
		ref  *corev1.SecretReference
	}{
		{"controllerPublishSecretRef", s.ControllerPublishSecretRef}, {"controllerExpandSecretRef", s.ControllerExpandSecretRef},
		{"nodePublishSecretRef", s.NodePublishSecretRef}, {"nodeExpandSecretRef", s.NodeExpandSecretRef}, {"nodeStageSecretRef", s.NodeStageSecretRef},
	} {
		if r.ref != nil {
			errs = append(errs, required(path.Child(r.name, "name"), r.ref.Name)...)
			errs = append(errs, required(path.Child(r.name, "namespace"), r.ref.Namespace)...)
		}
	}
	return errs
}

// validatePersistentVolumeUpdate: what the volume is stays; who has it, its size and what becomes of it may change.
func validatePersistentVolumeUpdate(obj, old *corev1.PersistentVolume) field.ErrorList {
	errs := validatePersistentVolume(obj)
	was := old.Spec.PersistentVolumeSource.DeepCopy()
	if was.CSI != nil && obj.Spec.CSI != nil { // the one part of a source that may change
		was.CSI.ControllerExpandSecretRef = obj.Spec.CSI.ControllerExpandSecretRef
	}
	if !apiequality.Semantic.DeepEqual(obj.Spec.PersistentVolumeSource, *was) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "persistentvolumesource"),
			"spec.persistentvolumesource is immutable after creation\n"+diff.Diff(*was, obj.Spec.PersistentVolumeSource)))
	}
	errs = append(errs, apivalidation.ValidateImmutableField(obj.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
	if old.Spec.NodeAffinity != nil && !apiequality.Semantic.DeepEqual(obj.Spec.NodeAffinity, old.Spec.NodeAffinity) {
		errs = append(errs, field.Invalid(field.NewPath("nodeAffinity"), obj.Spec.NodeAffinity, "field is immutable, except for updating from beta label to GA"))
	}
	if old.Spec.VolumeAttributesClassName != nil && obj.Spec.VolumeAttributesClassName == nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "volumeAttributesClassName"), "update from non-nil value to nil is forbidden"))
	}
	return errs
}
