package describe

import (
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"bonsai/pkg/kubectl/printers"
)

func storageClass(d *describer, c *storagev1.StorageClass) error {
	standard := "No"
	for _, name := range []string{"storageclass.kubernetes.io/is-default-class",
		"storageclass.beta.kubernetes.io/is-default-class"} {
		if c.Annotations[name] == "true" {
			standard = "Yes"
		}
	}
	d.line(0, "Name:\t%s\nIsDefaultClass:\t%s\nAnnotations:\t%s\n", c.Name, standard,
		printers.FormatLabels(c.Annotations))
	d.line(0, "Provisioner:\t%s\nParameters:\t%s\n", c.Provisioner, printers.FormatLabels(c.Parameters))
	expansion := unset
	if c.AllowVolumeExpansion != nil {
		expansion = truth(*c.AllowVolumeExpansion)
	}
	d.line(0, "AllowVolumeExpansion:\t%s\n", expansion)
	if len(c.MountOptions) == 0 {
		d.line(0, "MountOptions:\t<none>\n")
	} else {
		d.line(0, "MountOptions:\n")
		for _, o := range c.MountOptions {
			d.line(1, "%s\n", o)
		}
	}
	if c.ReclaimPolicy != nil {
		d.line(0, "ReclaimPolicy:\t%s\n", *c.ReclaimPolicy)
	}
	if c.VolumeBindingMode != nil {
		d.line(0, "VolumeBindingMode:\t%s\n", *c.VolumeBindingMode)
	}
	if len(c.AllowedTopologies) == 0 {
		return nil
	}
	d.line(0, "AllowedTopologies:\t\n")
	for i, t := range c.AllowedTopologies {
		d.line(1, "Term %d:\t", i)
		if len(t.MatchLabelExpressions) == 0 {
			d.line(0, "<none>\n")
		}
		for j, e := range t.MatchLabelExpressions {
			if j > 0 {
				d.line(1, "\t")
			}
			d.line(0, "%s in [%s]\n", e.Key, strings.Join(e.Values, ", "))
		}
	}
	return nil
}

func volumeAttributesClass(d *describer, c *storagev1.VolumeAttributesClass) error {
	d.line(0, "Name:\t%s\nAnnotations:\t%s\nDriverName:\t%s\nParameters:\t%s\n",
		c.Name, printers.FormatLabels(c.Annotations), c.DriverName, printers.FormatLabels(c.Parameters))
	return nil
}

func csiNode(d *describer, n *storagev1.CSINode) error {
	writeHead(d.writer, n, false)
	d.line(0, "CreationTimestamp:\t%s\nSpec:\n", when(n.CreationTimestamp))
	if len(n.Spec.Drivers) == 0 {
		return nil
	}
	d.line(1, "Drivers:\n")
	for _, driver := range n.Spec.Drivers {
		d.line(2, "%s:\n", driver.Name)
		d.line(3, "Node ID:\t%s\n", driver.NodeID)
		if driver.Allocatable != nil && driver.Allocatable.Count != nil {
			d.line(3, "Allocatables:\n")
			d.line(4, "Count:\t%d\n", *driver.Allocatable.Count)
		}
		if len(driver.TopologyKeys) > 0 {
			d.line(3, "Topology Keys:\t%s\n", driver.TopologyKeys)
		}
	}
	return nil
}
