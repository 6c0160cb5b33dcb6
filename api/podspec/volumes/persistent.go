package volumes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/validate"
)

// maxDriverName is how long the name of a CSI driver may be.
const maxDriverName = 63

// ValidatePersistent checks that a persistent volume has exactly one source, and that source as one of a pod's own
// volumes.
func ValidatePersistent(s *corev1.PersistentVolumeSource, path *field.Path) field.ErrorList {
	source := podSource(s)
	checks := []volumeCheck{
		{"hostPath", s.HostPath != nil, func(p *field.Path) field.ErrorList { return validateHostPath(s.HostPath, p) }},
		{"nfs", s.NFS != nil, func(p *field.Path) field.ErrorList { return validateNFS(s.NFS, p) }},
	}
	checks = append(checks, diskChecks(source)...)
	checks = append(checks,
		volumeCheck{"local", s.Local != nil, func(p *field.Path) field.ErrorList {
			return append(validate.Required(p.Child("path"), s.Local.Path),
				validate.NoBacksteps(s.Local.Path, p.Child("path"))...)
		}},
		volumeCheck{"csi", s.CSI != nil, func(p *field.Path) field.ErrorList { return validateCSI(s.CSI, p) }})
	return validateOneSource(checks, path)
}

// podSource is the source as a pod would have it, as far as checks of the disks look at it.
func podSource(s *corev1.PersistentVolumeSource) *corev1.VolumeSource {
	out := &corev1.VolumeSource{
		GCEPersistentDisk: s.GCEPersistentDisk, AWSElasticBlockStore: s.AWSElasticBlockStore, FC: s.FC,
		Flocker:       s.Flocker,
		VsphereVolume: s.VsphereVolume, Quobyte: s.Quobyte, AzureDisk: s.AzureDisk,
		PhotonPersistentDisk: s.PhotonPersistentDisk,
		PortworxVolume:       s.PortworxVolume,
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
	errs := validate.Required(at, s.Driver)
	if len(s.Driver) > maxDriverName {
		errs = append(errs, field.TooLong(at, "", maxDriverName))
	}
	if s.Driver != "" {
		errs = append(errs, validate.Invalid(at, s.Driver, validation.IsDNS1123Subdomain(strings.ToLower(s.Driver)))...)
	}
	errs = append(errs, validate.Required(path.Child("volumeHandle"), s.VolumeHandle)...)
	for _, r := range []struct {
		name string
		ref  *corev1.SecretReference
	}{
		{"controllerPublishSecretRef", s.ControllerPublishSecretRef},
		{"controllerExpandSecretRef", s.ControllerExpandSecretRef},
		{"nodePublishSecretRef", s.NodePublishSecretRef}, {"nodeExpandSecretRef", s.NodeExpandSecretRef},
		{"nodeStageSecretRef", s.NodeStageSecretRef},
	} {
		if r.ref != nil {
			errs = append(errs, validate.Required(path.Child(r.name, "name"), r.ref.Name)...)
			errs = append(errs, validate.Required(path.Child(r.name, "namespace"), r.ref.Namespace)...)
		}
	}
	return errs
}

// DefaultPersistent fills in what a client left out of the source of a persistent volume.
func DefaultPersistent(s *corev1.PersistentVolumeSource) {
	switch {
	case s.HostPath != nil:
		defaults.SetPtr(&s.HostPath.Type, corev1.HostPathUnset)
	case s.ISCSI != nil:
		defaults.Set(&s.ISCSI.ISCSIInterface, "default")
	case s.RBD != nil:
		defaults.Set(&s.RBD.RBDPool, "rbd")
		defaults.Set(&s.RBD.RadosUser, "admin")
		defaults.Set(&s.RBD.Keyring, "/etc/ceph/keyring")
	case s.AzureDisk != nil:
		defaultNetworkVolume(&corev1.Volume{VolumeSource: corev1.VolumeSource{AzureDisk: s.AzureDisk}})
	case s.ScaleIO != nil:
		defaults.Set(&s.ScaleIO.StorageMode, "ThinProvisioned")
		defaults.Set(&s.ScaleIO.FSType, "xfs")
	}
}
