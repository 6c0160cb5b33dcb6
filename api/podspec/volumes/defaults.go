package volumes

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/defaults"
	"bonsai/api/podspec/downward"
	"bonsai/api/podspec/image"
)

// tokenLifetime is how long a projected service account token is asked for, in seconds.
const tokenLifetime = 60 * 60

// Default fills in what a client left out of a volume; one without any source is an emptyDir.
func Default(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	switch {
	case v.HostPath != nil:
		defaults.SetPtr(&v.HostPath.Type, corev1.HostPathUnset)
	case v.Secret != nil:
		defaults.SetPtr(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		defaults.SetPtr(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		defaults.SetPtr(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownward(v.DownwardAPI.Items)
	case v.Projected != nil:
		defaultProjected(v.Projected)
	case v.Image != nil:
		defaults.Set(&v.Image.PullPolicy, image.PullPolicy(v.Image.Reference))
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		DefaultClaim(&v.Ephemeral.VolumeClaimTemplate.Spec)
	default:
		defaultNetworkVolume(v)
	}
}

func defaultProjected(p *corev1.ProjectedVolumeSource) {
	defaults.SetPtr(&p.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		if d := p.Sources[i].DownwardAPI; d != nil {
			defaultDownward(d.Items)
		}
		if t := p.Sources[i].ServiceAccountToken; t != nil {
			defaults.SetPtr(&t.ExpirationSeconds, int64(tokenLifetime))
		}
	}
}

func defaultDownward(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		downward.Default(items[i].FieldRef)
	}
}

// defaultNetworkVolume completes the sources that networks of disks bring along.
func defaultNetworkVolume(v *corev1.Volume) {
	switch {
	case v.ISCSI != nil:
		defaults.Set(&v.ISCSI.ISCSIInterface, "default")
	case v.RBD != nil:
		defaults.Set(&v.RBD.RBDPool, "rbd")
		defaults.Set(&v.RBD.RadosUser, "admin")
		defaults.Set(&v.RBD.Keyring, "/etc/ceph/keyring")
	case v.AzureDisk != nil:
		defaults.SetPtr(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		defaults.SetPtr(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
		defaults.SetPtr(&v.AzureDisk.FSType, "ext4")
		defaults.SetPtr(&v.AzureDisk.ReadOnly, false)
	case v.ScaleIO != nil:
		defaults.Set(&v.ScaleIO.StorageMode, "ThinProvisioned")
		defaults.Set(&v.ScaleIO.FSType, "xfs")
	}
}
