package describe

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func statefulSet(d *describer, o *appsv1.StatefulSet) error {
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		return err
	}
	d.line(0, "Name:\t%s\nNamespace:\t%s\nCreationTimestamp:\t%s\n", o.Name, o.Namespace, when(o.CreationTimestamp))
	d.line(0, "Selector:\t%s\n", selector)
	d.labels(0, "Labels", o.Labels)
	d.annotations(0, o.Annotations)
	if o.Spec.ServiceName != "" {
		d.line(0, "Service Name:\t%s\n", o.Spec.ServiceName)
	}
	d.line(0, "Pod Management Policy:\t%s\n", o.Spec.PodManagementPolicy)
	d.line(0, "Replicas:\t%d desired | %d total\n", count(o.Spec.Replicas), o.Status.Replicas)
	d.line(0, "Update Strategy:\t%s\n", o.Spec.UpdateStrategy.Type)
	if r := o.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		d.line(1, "Partition:\t%d\n", *r.Partition)
		if r.MaxUnavailable != nil {
			d.line(1, "MaxUnavailable:\t%s\n", r.MaxUnavailable.String())
		}
	}
	if r := o.Spec.PersistentVolumeClaimRetentionPolicy; r != nil {
		d.line(0, "Persistent Volume Claim Retention Policy:\n")
		d.line(1, "WhenDeleted:\t%s\n", r.WhenDeleted)
		d.line(1, "WhenScaled:\t%s\n", r.WhenScaled)
	}
	if err := writePhases(d, o, selector); err != nil {
		return err
	}
	writeTemplate(d, o.Spec.Template)
	writeClaims(d.writer, o.Spec.VolumeClaimTemplates)
	return nil
}

func daemonSet(d *describer, o *appsv1.DaemonSet) error {
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		return err
	}
	d.line(0, "Name:\t%s\nNamespace:\t%s\nSelector:\t%s\n", o.Name, o.Namespace, selector)
	d.labels(0, "Node-Selector", o.Spec.Template.Spec.NodeSelector)
	d.labels(0, "Labels", o.Labels)
	d.annotations(0, o.Annotations)
	s := o.Status
	d.line(0, "Desired Number of Nodes Scheduled: %d\nCurrent Number of Nodes Scheduled: %d\n",
		s.DesiredNumberScheduled, s.CurrentNumberScheduled)
	d.line(0, "Number of Nodes Scheduled with Up-to-date Pods: %d\n", s.UpdatedNumberScheduled)
	d.line(0, "Number of Nodes Scheduled with Available Pods: %d\n", s.NumberAvailable)
	d.line(0, "Number of Nodes Misscheduled: %d\n", s.NumberMisscheduled)
	if err := writePhases(d, o, selector); err != nil {
		return err
	}
	writeTemplate(d, o.Spec.Template)
	return nil
}
