package describe

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func disruptionBudget(d *describer, b *policyv1.PodDisruptionBudget) error {
	d.line(0, "Name:\t%s\nNamespace:\t%s\n", b.Name, b.Namespace)
	if m := b.Spec.MinAvailable; m != nil {
		d.line(0, "Min available:\t%s\n", m.String())
	} else if m := b.Spec.MaxUnavailable; m != nil {
		d.line(0, "Max unavailable:\t%s\n", m.String())
	}
	if b.Spec.Selector != nil {
		d.line(0, "Selector:\t%s\n", metav1.FormatLabelSelector(b.Spec.Selector))
	} else {
		d.line(0, "Selector:\t<unset>\n")
	}
	s := &b.Status
	d.line(0, "Status:\n")
	d.line(2, "Allowed disruptions:\t%d\n", s.DisruptionsAllowed)
	d.line(2, "Current:\t%d\n", s.CurrentHealthy)
	d.line(2, "Desired:\t%d\n", s.DesiredHealthy)
	d.line(2, "Total:\t%d\n", s.ExpectedPods)
	return nil
}
