package core

import (
	corev1 "k8s.io/api/core/v1"
)

// tokenLifetime is how long a projected service account token is asked for, in seconds.
const tokenLifetime = 60 * 60

// defaultVolume fills in what a client left out of a volume; one without any source is an emptyDir.
func defaultVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	switch {
	case v.HostPath != nil:
		setPtr(&v.HostPath.Type, corev1.HostPathUnset)
	case v.Secret != nil:
		setPtr(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		setPtr(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		setPtr(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownward(v.DownwardAPI.Items)
	case v.Projected != nil:
		defaultProjected(v.Projected)
	case v.Image != nil:
		set(&v.Image.PullPolicy, pullPolicyOf(v.Image.Reference))
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		DefaultClaimSpec(&v.Ephemeral.VolumeClaimTemplate.Spec)
	default:
		defaultNetworkVolume(v)
	}
}

func defaultProjected(p *corev1.ProjectedVolumeSource) {
	setPtr(&p.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		if d := p.Sources[i].DownwardAPI; d != nil {
			defaultDownward(d.Items)
		}
		if t := p.Sources[i].ServiceAccountToken; t != nil {
			setPtr(&t.ExpirationSeconds, int64(tokenLifetime))
		}
	}
}

func defaultDownward(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		defaultFieldRef(items[i].FieldRef)
	}
}

// defaultNetworkVolume completes the sources that networks of disks bring along.
func defaultNetworkVolume(v *corev1.Volume) {
	switch {
	case v.ISCSI != nil:
		set(&v.ISCSI.ISCSIInterface, "default")
	case v.RBD != nil:
		set(&v.RBD.RBDPool, "rbd")
		set(&v.RBD.RadosUser, "admin")
		set(&v.RBD.Keyring, "/etc/ceph/keyring")
	case v.AzureDisk != nil:
		setPtr(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		setPtr(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
		setPtr(&v.AzureDisk.FSType, "ext4")
		setPtr(&v.AzureDisk.ReadOnly, false)
	case v.ScaleIO != nil:
		set(&v.ScaleIO.StorageMode, "ThinProvisioned")
		set(&v.ScaleIO.FSType, "xfs")
	}
}

// DefaultClaimSpec fills in what a client left out of a claim on storage, of its own or in a template.
func DefaultClaimSpec(s *corev1.PersistentVolumeClaimSpec) {
	setPtr(&s.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(s.Resources.Limits)
	roundUp(s.Resources.Requests)
}
