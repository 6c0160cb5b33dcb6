package describe

import (
	corev1 "k8s.io/api/core/v1"
)

// writeVolumes writes volumes at space ("" for pods, "  " for templates).
func writeVolumes(d *describer, all []corev1.Volume, space string) {
	if len(all) == 0 {
		d.line(0, "%sVolumes:\t<none>\n", space)
		return
	}
	d.line(0, "%sVolumes:\n", space)
	name := " "
	if space == "" {
		name = "  "
	}
	for _, v := range all {
		d.line(0, "%s%s%v:\n", space, name, v.Name)
		writeVolume(d, v.VolumeSource)
	}
}

// A volume has one source. The common ones are here, in their own words; writeForeign has those of other storage
// systems.
func writeVolume(d *describer, v corev1.VolumeSource) {
	yes := func(b *bool) bool { return b != nil && *b }
	switch {
	case v.ConfigMap != nil:
		d.line(2, "Type:\tConfigMap (a volume populated by a ConfigMap)\n    Name:\t%v\n    Optional:\t%v\n",
			v.ConfigMap.Name, yes(v.ConfigMap.Optional))
	case v.Secret != nil:
		d.line(2, "Type:\tSecret (a volume populated by a Secret)\n    SecretName:\t%v\n    Optional:\t%v\n",
			v.Secret.SecretName, yes(v.Secret.Optional))
	case v.EmptyDir != nil:
		limit := "<unset>"
		if l := v.EmptyDir.SizeLimit; l != nil && l.Sign() > 0 {
			limit = l.String()
		}
		d.line(2, "Type:\tEmptyDir (a temporary directory that shares a pod's lifetime)\n    Medium:\t%v\n    SizeLimit:\t%v\n", v.EmptyDir.Medium, limit)
	case v.HostPath != nil:
		kind := "<none>"
		if v.HostPath.Type != nil {
			kind = string(*v.HostPath.Type)
		}
		d.line(2, "Type:\tHostPath (bare host directory volume)\n    Path:\t%v\n    HostPathType:\t%v\n",
			v.HostPath.Path, kind)
	case v.DownwardAPI != nil:
		d.line(2, "Type:\tDownwardAPI (a volume populated by information about the pod)\n    Items:\n")
		for _, i := range v.DownwardAPI.Items {
			if i.FieldRef != nil {
				d.line(3, "%v -> %v\n", i.FieldRef.FieldPath, i.Path)
			}
			if i.ResourceFieldRef != nil {
				d.line(3, "%v -> %v\n", i.ResourceFieldRef.Resource, i.Path)
			}
		}
	case v.Projected != nil:
		d.line(2, "Type:\tProjected (a volume that contains injected data from multiple sources)\n")
		for _, s := range v.Projected.Sources {
			writeProjected(d.writer, s)
		}
	case v.PersistentVolumeClaim != nil:
		d.line(2, "Type:\tPersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)\n    ClaimName:\t%v\n    ReadOnly:\t%v\n", v.PersistentVolumeClaim.ClaimName, v.PersistentVolumeClaim.ReadOnly)
	case v.Image != nil:
		d.line(2, "Type:\tImage (a container image or OCI artifact)\n    Reference:\t%s\n    PullPolicy:\t%s\n",
			v.Image.Reference, v.Image.PullPolicy)
	case v.NFS != nil:
		d.line(2, "Type:\tNFS (an NFS mount that lasts the lifetime of a pod)\n    Server:\t%s\n    Path:\t%s\n    ReadOnly:\t%v\n", v.NFS.Server, v.NFS.Path, v.NFS.ReadOnly)
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		writeEphemeral(d.writer, v.Ephemeral.VolumeClaimTemplate)
	case v.CSI != nil:
		writeCsi(d.writer, v.CSI)
	default:
		writeForeign(d, v)
	}
}

func writeEphemeral(w *writer, t *corev1.PersistentVolumeClaimTemplate) {
	class, mode := "", ""
	if t.Spec.StorageClassName != nil {
		class = *t.Spec.StorageClassName
	}
	if t.Spec.VolumeMode != nil {
		mode = string(*t.Spec.VolumeMode)
	}
	w.line(2, "Type:\tEphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)\n")
	w.line(2, "StorageClass:\t%s\n    Volume:\t%s\n", class, t.Spec.VolumeName)
	writeDeepLabels(w, "Labels", "=", t.Labels)
	writeDeepLabels(w, "Annotations", ": ", t.Annotations)
	w.line(2, "Capacity:\t\n    Access Modes:\t\n    VolumeMode:\t%s\n", mode)
	writeDataSource(w, 2, t.Spec.DataSource)
}

func writeCsi(w *writer, v *corev1.CSIVolumeSource) {
	fs := ""
	if v.FSType != nil {
		fs = *v.FSType
	}
	w.line(2, "Type:\tCSI (a Container Storage Interface (CSI) volume source)\n    Driver:\t%s\n    FSType:\t%s\n    ReadOnly:\t%v\n", v.Driver, fs, v.ReadOnly != nil && *v.ReadOnly)
	writeVolumeAttributes(w, v.VolumeAttributes)
}

// writeVolumeAttributes writes the attributes that a CSI driver gets with the volume.
func writeVolumeAttributes(w *writer, m map[string]string) {
	if len(m) == 0 {
		w.line(2, "VolumeAttributes:\t<none>\n")
		return
	}
	writeDeepLabels(w, "VolumeAttributes", "=", m)
}

// writeDeepLabels writes a map as one pair a line, equals between key and value, four further to the right than other
// values.
func writeDeepLabels(w *writer, title, equals string, m map[string]string) {
	if len(m) == 0 {
		w.line(2, "%s:\t    <none>\n", title)
		return
	}
	for i, k := range keys(m) {
		if i == 0 {
			w.line(2, "%s:", title)
		} else {
			w.line(2, "")
		}
		w.line(0, "\t    %s%s%s\n", k, equals, m[k])
	}
}

func writeProjected(w *writer, s corev1.VolumeProjection) {
	yes := func(b *bool) bool { return b != nil && *b }
	switch {
	case s.Secret != nil:
		w.line(2, "SecretName:\t%v\n    Optional:\t%v\n", s.Secret.Name, yes(s.Secret.Optional))
	case s.DownwardAPI != nil:
		w.line(2, "DownwardAPI:\ttrue\n")
	case s.ConfigMap != nil:
		w.line(2, "ConfigMapName:\t%v\n    Optional:\t%v\n", s.ConfigMap.Name, yes(s.ConfigMap.Optional))
	case s.ServiceAccountToken != nil && s.ServiceAccountToken.ExpirationSeconds != nil:
		w.line(2, "TokenExpirationSeconds:\t%d\n", *s.ServiceAccountToken.ExpirationSeconds)
	}
}
