package describe

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// field is a line of a source: its name, with what stands behind it, and its value.
type field struct {
	name  string
	value any
}

// writeSource writes what kind of storage a volume is, and where it is.
func writeSource(w *writer, kind string, all ...field) {
	w.line(2, "Type:\t%s\n", kind)
	for _, f := range all {
		w.line(2, "%s\t%v\n", f.name, f.value)
	}
}

// secretRef is a reference to a Secret, whose nil is shown as "nil".
type secretRef interface {
	*corev1.LocalObjectReference | *corev1.SecretReference
	fmt.Stringer
}

// writeForeign writes a volume on a storage system that is named in the pod.
func writeForeign(d *describer, v corev1.VolumeSource) {
	switch {
	case v.ISCSI != nil:
		iscsi(d, v.ISCSI, v.ISCSI.SecretRef)
	case v.Glusterfs != nil:
		g := v.Glusterfs
		writeSource(d.writer, glusterfs,
			field{"EndpointsName:", g.EndpointsName}, field{"Path:", g.Path}, field{"ReadOnly:", g.ReadOnly})
	case v.RBD != nil:
		rbd(d, v.RBD, v.RBD.SecretRef)
	case v.CephFS != nil:
		cephFS(d, v.CephFS, v.CephFS.SecretRef)
	case v.Cinder != nil:
		cinder(d, v.Cinder, v.Cinder.SecretRef)
	case v.FlexVolume != nil:
		flex(d, v.FlexVolume, v.FlexVolume.SecretRef)
	case v.AzureFile != nil:
		a := v.AzureFile
		writeSource(d.writer, azureFile,
			field{"SecretName:", a.SecretName}, field{"ShareName:", a.ShareName}, field{"ReadOnly:", a.ReadOnly})
	case v.ScaleIO != nil:
		writeSource(d.writer, scaleIO, scale(v.ScaleIO, nil)...)
	case v.StorageOS != nil:
		s := v.StorageOS
		writeSource(d.writer, storageOS,
			field{"VolumeName:", s.VolumeName}, field{"VolumeNamespace:", s.VolumeNamespace},
			field{"FSType:", s.FSType}, field{"ReadOnly:", s.ReadOnly})
	case v.GitRepo != nil:
		writeSource(d.writer, "GitRepo (a volume that is pulled from git when the pod is created)",
			field{"Repository:", v.GitRepo.Repository}, field{"Revision:", v.GitRepo.Revision})
	default:
		writeDisk(d.writer, v)
	}
}

// writeForeignPersistent writes a volume of the cluster's on a storage system: its Secrets are in a namespace of their
// own.
func writeForeignPersistent(d *describer, s *corev1.PersistentVolumeSource) {
	switch {
	case s.ISCSI != nil:
		v := s.ISCSI
		iscsi(d, &corev1.ISCSIVolumeSource{TargetPortal: v.TargetPortal, IQN: v.IQN, Lun: v.Lun,
			ISCSIInterface: v.ISCSIInterface, FSType: v.FSType, ReadOnly: v.ReadOnly,
			Portals: v.Portals, DiscoveryCHAPAuth: v.DiscoveryCHAPAuth, SessionCHAPAuth: v.SessionCHAPAuth,
			InitiatorName: v.InitiatorName}, v.SecretRef)
	case s.Glusterfs != nil:
		g, namespace := s.Glusterfs, unset
		if g.EndpointsNamespace != nil {
			namespace = *g.EndpointsNamespace
		}
		writeSource(d.writer, glusterfs,
			field{"EndpointsName:", g.EndpointsName}, field{"EndpointsNamespace:", namespace}, field{"Path:", g.Path},
			field{"ReadOnly:", g.ReadOnly})
	case s.RBD != nil:
		v := s.RBD
		rbd(d, &corev1.RBDVolumeSource{CephMonitors: v.CephMonitors, RBDImage: v.RBDImage, FSType: v.FSType,
			RBDPool: v.RBDPool, RadosUser: v.RadosUser, Keyring: v.Keyring, ReadOnly: v.ReadOnly}, v.SecretRef)
	case s.CephFS != nil:
		v := s.CephFS
		cephFS(d, &corev1.CephFSVolumeSource{Monitors: v.Monitors, Path: v.Path, User: v.User, SecretFile: v.SecretFile,
			ReadOnly: v.ReadOnly}, v.SecretRef)
	case s.Cinder != nil:
		cinder(d, &corev1.CinderVolumeSource{VolumeID: s.Cinder.VolumeID, FSType: s.Cinder.FSType,
			ReadOnly: s.Cinder.ReadOnly}, s.Cinder.SecretRef)
	case s.FlexVolume != nil:
		v := s.FlexVolume
		flex(d, &corev1.FlexVolumeSource{Driver: v.Driver, FSType: v.FSType, ReadOnly: v.ReadOnly, Options: v.Options},
			v.SecretRef)
	case s.AzureFile != nil:
		a, namespace := s.AzureFile, ""
		if a.SecretNamespace != nil {
			namespace = *a.SecretNamespace
		}
		writeSource(d.writer, azureFile,
			field{"SecretName:", a.SecretName}, field{"SecretNamespace:", namespace},
			field{"ShareName:", a.ShareName}, field{"ReadOnly:", a.ReadOnly})
	case s.ScaleIO != nil:
		v, name, namespace := s.ScaleIO, "", ""
		if v.SecretRef != nil {
			name, namespace = v.SecretRef.Name, v.SecretRef.Namespace
		}
		writeSource(d.writer, scaleIO,
			scale(&corev1.ScaleIOVolumeSource{Gateway: v.Gateway, System: v.System,
				ProtectionDomain: v.ProtectionDomain, StoragePool: v.StoragePool,
				StorageMode: v.StorageMode, VolumeName: v.VolumeName, FSType: v.FSType, ReadOnly: v.ReadOnly},
				[]field{{"SecretName:", name}, {"SecretNamespace:", namespace}})...)
	case s.StorageOS != nil:
		v := s.StorageOS
		writeSource(d.writer, storageOS,
			field{"VolumeName:", v.VolumeName}, field{"VolumeNamespace:", v.VolumeNamespace},
			field{"FSType:", v.FSType}, field{"ReadOnly:", v.ReadOnly})
	default:
		writeVolume(d, corev1.VolumeSource{HostPath: s.HostPath, NFS: s.NFS, FC: s.FC, Flocker: s.Flocker,
			AzureDisk: s.AzureDisk, VsphereVolume: s.VsphereVolume,
			AWSElasticBlockStore: s.AWSElasticBlockStore, GCEPersistentDisk: s.GCEPersistentDisk, Quobyte: s.Quobyte,
			PortworxVolume: s.PortworxVolume, PhotonPersistentDisk: s.PhotonPersistentDisk})
	}
}

// writeDisk writes the sources that are the same for pods and for the cluster.
func writeDisk(w *writer, v corev1.VolumeSource) {
	switch {
	case v.FC != nil:
		lun := "<none>"
		if v.FC.Lun != nil {
			lun = fmt.Sprint(*v.FC.Lun)
		}
		writeSource(w, "FC (a Fibre Channel disk)",
			field{"TargetWWNs:", strings.Join(v.FC.TargetWWNs, ", ")}, field{"LUN:", lun},
			field{"FSType:", v.FC.FSType}, field{"ReadOnly:", v.FC.ReadOnly})
	case v.Flocker != nil:
		writeSource(w, "Flocker (a Flocker volume mounted by the Flocker agent)",
			field{"DatasetName:", v.Flocker.DatasetName}, field{"DatasetUUID:", v.Flocker.DatasetUUID})
	case v.AzureDisk != nil:
		a := v.AzureDisk
		writeSource(w, "AzureDisk (an Azure Data Disk mount on the host and bind mount to the pod)",
			field{"DiskName:", a.DiskName}, field{"DiskURI:", a.DataDiskURI},
			field{"Kind:", or(a.Kind)}, field{"FSType:", or(a.FSType)}, field{"CachingMode:", or(a.CachingMode)},
			field{"ReadOnly:", or(a.ReadOnly)})
	case v.VsphereVolume != nil:
		s := v.VsphereVolume
		writeSource(w, "vSphereVolume (a Persistent Disk resource in vSphere)",
			field{"VolumePath:", s.VolumePath}, field{"FSType:", s.FSType},
			field{"StoragePolicyName:", s.StoragePolicyName})
	case v.AWSElasticBlockStore != nil:
		a := v.AWSElasticBlockStore
		writeSource(w, "AWSElasticBlockStore (a Persistent Disk resource in AWS)",
			field{"VolumeID:", a.VolumeID}, field{"FSType:", a.FSType}, field{"Partition:", a.Partition},
			field{"ReadOnly:", a.ReadOnly})
	case v.GCEPersistentDisk != nil:
		g := v.GCEPersistentDisk
		writeSource(w, "GCEPersistentDisk (a Persistent Disk resource in Google Compute Engine)",
			field{"PDName:", g.PDName}, field{"FSType:", g.FSType}, field{"Partition:", g.Partition},
			field{"ReadOnly:", g.ReadOnly})
	case v.Quobyte != nil:
		q := v.Quobyte
		writeSource(w, "Quobyte (a Quobyte mount on the host that shares a pod's lifetime)",
			field{"Registry:", q.Registry}, field{"Volume:", q.Volume}, field{"ReadOnly:", q.ReadOnly})
	case v.PortworxVolume != nil:
		writeSource(w, "PortworxVolume (a Portworx Volume resource)", field{"VolumeID:", v.PortworxVolume.VolumeID})
	case v.PhotonPersistentDisk != nil:
		writeSource(w, "PhotonPersistentDisk (a Persistent Disk resource in photon platform)",
			field{"PdID:", v.PhotonPersistentDisk.PdID}, field{"FSType:", v.PhotonPersistentDisk.FSType})
	default:
		w.line(1, "<unknown>\n")
	}
}

const (
	glusterfs = "Glusterfs (a Glusterfs mount on the host that shares a pod's lifetime)"
	azureFile = "AzureFile (an Azure File Service mount on the host and bind mount to the pod)"
	scaleIO   = "ScaleIO (a persistent volume backed by a block device in ScaleIO)"
	storageOS = "StorageOS (a StorageOS Persistent Disk resource)"
)

// or is the value, or the zero of its type.
func or[T any](v *T) (out T) {
	if v != nil {
		out = *v
	}
	return out
}

// iscsi writes a target; upstream forgets the colon behind the interface.
func iscsi[S secretRef](d *describer, v *corev1.ISCSIVolumeSource, secret S) {
	initiator := "<none>"
	if v.InitiatorName != nil {
		initiator = *v.InitiatorName
	}
	writeSource(d.writer, "ISCSI (an ISCSI Disk resource that is attached to a kubelet's host machine and then exposed to the pod)",
		field{"TargetPortal:", v.TargetPortal}, field{"IQN:", v.IQN}, field{"Lun:", v.Lun},
		field{"ISCSIInterface", v.ISCSIInterface}, field{"FSType:", v.FSType}, field{"ReadOnly:", v.ReadOnly},
		field{"Portals:", v.Portals}, field{"DiscoveryCHAPAuth:", v.DiscoveryCHAPAuth},
		field{"SessionCHAPAuth:", v.SessionCHAPAuth}, field{"SecretRef:", secret}, field{"InitiatorName:", initiator})
}

func rbd[S secretRef](d *describer, v *corev1.RBDVolumeSource, secret S) {
	writeSource(d.writer, "RBD (a Rados Block Device mount on the host that shares a pod's lifetime)",
		field{"CephMonitors:", v.CephMonitors}, field{"RBDImage:", v.RBDImage}, field{"FSType:", v.FSType},
		field{"RBDPool:", v.RBDPool},
		field{"RadosUser:", v.RadosUser}, field{"Keyring:", v.Keyring}, field{"SecretRef:", secret},
		field{"ReadOnly:", v.ReadOnly})
}

func cephFS[S secretRef](d *describer, v *corev1.CephFSVolumeSource, secret S) {
	writeSource(d.writer, "CephFS (a CephFS mount on the host that shares a pod's lifetime)",
		field{"Monitors:", v.Monitors}, field{"Path:", v.Path}, field{"User:", v.User},
		field{"SecretFile:", v.SecretFile}, field{"SecretRef:", secret}, field{"ReadOnly:", v.ReadOnly})
}

func cinder[S secretRef](d *describer, v *corev1.CinderVolumeSource, secret S) {
	writeSource(d.writer, "Cinder (a Persistent Disk resource in OpenStack)",
		field{"VolumeID:", v.VolumeID}, field{"FSType:", v.FSType}, field{"ReadOnly:", v.ReadOnly},
		field{"SecretRef:", secret})
}

func flex[S secretRef](d *describer, v *corev1.FlexVolumeSource, secret S) {
	writeSource(d.writer, "FlexVolume (a generic volume resource that is provisioned/attached using an exec based plugin)",
		field{"Driver:", v.Driver}, field{"FSType:", v.FSType}, field{"SecretRef:", secret},
		field{"ReadOnly:", v.ReadOnly}, field{"Options:", v.Options})
}

// scale are the fields of a ScaleIO volume, with those of its secret.
func scale(v *corev1.ScaleIOVolumeSource, secret []field) []field {
	out := []field{{"Gateway:", v.Gateway}, {"System:", v.System}, {"Protection Domain:", v.ProtectionDomain},
		{"Storage Pool:", v.StoragePool},
		{"Storage Mode:", v.StorageMode}, {"VolumeName:", v.VolumeName}}
	return append(append(out, secret...), field{"FSType:", v.FSType}, field{"ReadOnly:", v.ReadOnly})
}
