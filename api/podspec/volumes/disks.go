package volumes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// diskChecks lists the sources that no node of ours can mount: what must be given is checked.
func diskChecks(s *corev1.VolumeSource) []volumeCheck {
	return append(cloudChecks(s), []volumeCheck{
		{"gitRepo", s.GitRepo != nil, func(p *field.Path) field.ErrorList {
			return validate.Required(p.Child("repository"), s.GitRepo.Repository)
		}},
		{"iscsi", s.ISCSI != nil, func(p *field.Path) field.ErrorList {
			return append(validate.Required(p.Child("targetPortal"), s.ISCSI.TargetPortal),
				validate.Required(p.Child("iqn"), s.ISCSI.IQN)...)
		}},
		{"glusterfs", s.Glusterfs != nil, func(p *field.Path) field.ErrorList {
			return append(validate.Required(p.Child("endpoints"), s.Glusterfs.EndpointsName),
				validate.Required(p.Child("path"), s.Glusterfs.Path)...)
		}},
		{"rbd", s.RBD != nil, func(p *field.Path) field.ErrorList {
			return append(some(p.Child("monitors"), s.RBD.CephMonitors),
				validate.Required(p.Child("image"), s.RBD.RBDImage)...)
		}},
		{"flexVolume", s.FlexVolume != nil, func(p *field.Path) field.ErrorList {
			return validate.Required(p.Child("driver"), s.FlexVolume.Driver)
		}},
		{"cephfs", s.CephFS != nil, func(p *field.Path) field.ErrorList {
			return some(p.Child("monitors"), s.CephFS.Monitors)
		}},
		{"flocker", s.Flocker != nil, func(p *field.Path) field.ErrorList {
			if s.Flocker.DatasetName == "" && s.Flocker.DatasetUUID == "" {
				return field.ErrorList{field.Required(p, "one of datasetName and datasetUUID is required")}
			}
			return nil
		}},
		{"fc", s.FC != nil, func(p *field.Path) field.ErrorList {
			if len(s.FC.TargetWWNs) == 0 && len(s.FC.WWIDs) == 0 {
				return field.ErrorList{field.Required(p.Child("targetWWNs"),
					"must specify either targetWWNs or wwids, but not both")}
			}
			return nil
		}},
		{"quobyte", s.Quobyte != nil, func(p *field.Path) field.ErrorList {
			var errs field.ErrorList
			if s.Quobyte.Registry == "" {
				errs = append(errs, field.Required(p.Child("registry"),
					"must be a host:port pair or multiple pairs separated by commas"))
			}
			return append(errs, validate.Required(p.Child("volume"), s.Quobyte.Volume)...)
		}},
		{"portworxVolume", s.PortworxVolume != nil, func(p *field.Path) field.ErrorList {
			return validate.Required(p.Child("volumeID"), s.PortworxVolume.VolumeID)
		}},
		{"scaleIO", s.ScaleIO != nil, func(p *field.Path) field.ErrorList {
			errs := append(validate.Required(p.Child("gateway"), s.ScaleIO.Gateway),
				validate.Required(p.Child("system"), s.ScaleIO.System)...)
			return append(errs, validate.Required(p.Child("volumeName"), s.ScaleIO.VolumeName)...)
		}},
		{"storageos", s.StorageOS != nil, func(p *field.Path) field.ErrorList {
			return validate.Required(p.Child("volumeName"), s.StorageOS.VolumeName)
		}},
	}...)
}

// cloudChecks are the disks of cloud providers.
func cloudChecks(s *corev1.VolumeSource) []volumeCheck {
	return []volumeCheck{
		{"gcePersistentDisk", s.GCEPersistentDisk != nil, func(p *field.Path) field.ErrorList {
			return validate.Required(p.Child("pdName"), s.GCEPersistentDisk.PDName)
		}},
		{"awsElasticBlockStore", s.AWSElasticBlockStore != nil, func(p *field.Path) field.ErrorList {
			return validate.Required(p.Child("volumeID"), s.AWSElasticBlockStore.VolumeID)
		}},
		{"cinder", s.Cinder != nil, func(p *field.Path) field.ErrorList {
			return validate.Required(p.Child("volumeID"), s.Cinder.VolumeID)
		}},
		{"azureFile", s.AzureFile != nil, func(p *field.Path) field.ErrorList {
			return append(validate.Required(p.Child("secretName"), s.AzureFile.SecretName),
				validate.Required(p.Child("shareName"), s.AzureFile.ShareName)...)
		}},
		{"azureDisk", s.AzureDisk != nil, func(p *field.Path) field.ErrorList {
			return append(validate.Required(p.Child("diskName"), s.AzureDisk.DiskName),
				validate.Required(p.Child("diskURI"), s.AzureDisk.DataDiskURI)...)
		}},
		{"vsphereVolume", s.VsphereVolume != nil, func(p *field.Path) field.ErrorList {
			return validate.Required(p.Child("volumePath"), s.VsphereVolume.VolumePath)
		}},
		{"photonPersistentDisk", s.PhotonPersistentDisk != nil, func(p *field.Path) field.ErrorList {
			return validate.Required(p.Child("pdID"), s.PhotonPersistentDisk.PdID)
		}},
	}
}

// some checks a list that may not be empty.
func some(path *field.Path, list []string) field.ErrorList {
	if len(list) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}
