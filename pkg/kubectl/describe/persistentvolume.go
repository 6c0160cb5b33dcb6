package describe

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func persistentVolume(d *describer, v *corev1.PersistentVolume) error {
	writeHead(d.writer, v, false)
	d.line(0, "Finalizers:\t%v\n", v.Finalizers)
	class := v.Spec.StorageClassName
	if old, ok := v.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = old
	}
	d.line(0, "StorageClass:\t%s\n", class)
	writePhase(d, v, string(v.Status.Phase))
	claim := ""
	if r := v.Spec.ClaimRef; r != nil {
		claim = r.Namespace + "/" + r.Name
	}
	d.line(0, "Claim:\t%s\nReclaim Policy:\t%v\nAccess Modes:\t%s\n", claim, v.Spec.PersistentVolumeReclaimPolicy,
		modes(v.Spec.AccessModes))
	writeVolumeMode(d.writer, v.Spec.VolumeMode)
	size := v.Spec.Capacity[corev1.ResourceStorage]
	d.line(0, "Capacity:\t%s\n", size.String())
	writeVolumeAffinity(d.writer, v.Spec.NodeAffinity)
	d.line(0, "Message:\t%s\nSource:\n", v.Status.Message)
	writePersistentSource(d, &v.Spec.PersistentVolumeSource)
	return nil
}

// writePhase writes an object's phase, or since when it is going away.
func writePhase(d *describer, o metav1.Object, phase string) {
	if t := o.GetDeletionTimestamp(); t != nil {
		d.line(0, "Status:\tTerminating (lasts %s)\n", age(d.now.Sub(t.Time)))
		return
	}
	d.line(0, "Status:\t%s\n", phase)
}

func writeVolumeMode(w *writer, m *corev1.PersistentVolumeMode) {
	if m != nil {
		w.line(0, "VolumeMode:\t%v\n", *m)
	}
}

// modes names access modes in short, each once: "RWO,ROX".
func modes(all []corev1.PersistentVolumeAccessMode) string {
	var words []string
	for _, m := range []struct {
		mode corev1.PersistentVolumeAccessMode
		word string
	}{{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"},
		{corev1.ReadWriteOncePod, "RWOP"}} {
		if slices.Contains(all, m.mode) {
			words = append(words, m.word)
		}
	}
	return strings.Join(words, ",")
}

// writeVolumeAffinity writes from which nodes the volume can be reached: any of the terms must hold.
func writeVolumeAffinity(w *writer, a *corev1.VolumeNodeAffinity) {
	w.line(0, "Node Affinity:\t")
	if a == nil || a.Required == nil {
		w.line(0, "<none>\n")
		return
	}
	w.line(0, "\n  Required Terms:\t")
	if len(a.Required.NodeSelectorTerms) == 0 {
		w.line(0, "<none>\n")
		return
	}
	w.line(0, "\n")
	for i, t := range a.Required.NodeSelectorTerms {
		w.line(2, "Term %d:\t", i)
		if len(t.MatchExpressions) == 0 {
			w.line(0, "<none>\n")
		}
		for j, r := range t.MatchExpressions {
			if j > 0 {
				w.line(2, "\t")
			}
			w.line(0, "%s %s%s\n", r.Key, strings.ToLower(string(r.Operator)), valueText(r.Values))
		}
	}
}

// valueText is " [a, b]", "" for no values.
func valueText(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return " [" + strings.Join(values, ", ") + "]"
}

// writePersistentSource writes what the storage is.
func writePersistentSource(d *describer, s *corev1.PersistentVolumeSource) {
	switch {
	case s.Local != nil:
		d.line(2, "Type:\tLocalVolume (a persistent volume backed by local storage on a node)\n    Path:\t%v\n",
			s.Local.Path)
	case s.CSI != nil:
		d.line(2, "Type:\tCSI (a Container Storage Interface (CSI) volume source)\n    Driver:\t%s\n    FSType:\t%s\n    VolumeHandle:\t%s\n    ReadOnly:\t%v\n",
			s.CSI.Driver, s.CSI.FSType, s.CSI.VolumeHandle, s.CSI.ReadOnly)
		writeVolumeAttributes(d.writer, s.CSI.VolumeAttributes)
	default:
		writeForeignPersistent(d, s)
	}
}

func persistentVolumeClaim(d *describer, c *corev1.PersistentVolumeClaim) error {
	pods, err := listed[corev1.Pod](d, "pods", c.Namespace, "")
	if err != nil {
		return err
	}
	writeVolumeClaim(d, c, users(pods, c.Name))
	return nil
}

// users are the names of the pods that use a claim, once for each volume that does.
func users(pods []corev1.Pod, claim string) []string {
	var names []string
	for _, p := range pods {
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim ||
				v.Ephemeral != nil && p.Name+"-"+v.Name == claim {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

// storageClassOf is the class a claim names: an old annotation goes before the field.
func storageClassOf(c *corev1.PersistentVolumeClaim) string {
	if class, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	return or(c.Spec.StorageClassName)
}

// writeVolumeClaim writes a claim and who uses it.
func writeVolumeClaim(d *describer, c *corev1.PersistentVolumeClaim, users []string) {
	d.line(0, "Name:\t%s\nNamespace:\t%s\nStorageClass:\t%s\n", c.Name, c.Namespace, storageClassOf(c))
	writePhase(d, c, string(c.Status.Phase))
	d.line(0, "Volume:\t%s\n", c.Spec.VolumeName)
	d.labels(0, "Labels", c.Labels)
	d.annotations(0, c.Annotations)
	d.line(0, "Finalizers:\t%v\n", c.Finalizers)
	capacity, access := "", ""
	if c.Spec.VolumeName != "" {
		size := c.Status.Capacity[corev1.ResourceStorage]
		capacity, access = size.String(), modes(c.Status.AccessModes)
	}
	d.line(0, "Capacity:\t%s\nAccess Modes:\t%s\n", capacity, access)
	writeVolumeMode(d.writer, c.Spec.VolumeMode)
	writeDataSource(d.writer, 0, c.Spec.DataSource)
	for i, name := range users {
		title := ""
		if i == 0 {
			title = "Used By:"
		}
		d.line(0, "%s\t%s\n", title, name)
	}
	if len(users) == 0 {
		d.line(0, "Used By:\t<none>\n")
	}
	if len(c.Status.Conditions) > 0 {
		d.line(0, "Conditions:\n  Type\tStatus\tLastProbeTime\tLastTransitionTime\tReason\tMessage\n")
		d.line(1, "----\t------\t-----------------\t------------------\t------\t-------\n")
		for _, k := range c.Status.Conditions {
			d.line(1, "%s\n", strings.Join(
				[]string{fmt.Sprint(k.Type), fmt.Sprint(k.Status), when(k.LastProbeTime), when(k.LastTransitionTime),
					k.Reason, k.Message}, " \t"))
		}
	}
}

// writeDataSource writes what a claim's volume is filled from, nothing without it.
func writeDataSource(w *writer, level int, s *corev1.TypedLocalObjectReference) {
	if s == nil {
		return
	}
	w.line(level, "DataSource:\n")
	if s.APIGroup != nil {
		w.line(level+1, "APIGroup:\t%v\n", *s.APIGroup)
	}
	w.line(level+1, "Kind:\t%v\n", s.Kind)
	w.line(level+1, "Name:\t%v\n", s.Name)
}
