package describe

import (
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// anyAutoscaler describes an autoscaler as v2 has it, whatever version was asked for: v1 has half of it in annotations.
func anyAutoscaler(d *describer, u *unstructured.Unstructured) error {
	gvk := autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")
	if u.GroupVersionKind() != gvk {
		m, err := d.client.MappingFor(gvk)
		if err != nil {
			return err
		}
		if u, err = d.client.Get(d.ctx, m, u.GetNamespace(), u.GetName()); err != nil {
			return err
		}
	}
	return typed(autoscaler)(d, u)
}

func autoscaler(d *describer, a *autoscalingv2.HorizontalPodAutoscaler) error {
	writeHead(d.writer, a, true)
	d.line(0, "CreationTimestamp:\t%s\n", a.CreationTimestamp.Time.Format(time.RFC1123Z))
	d.line(0, "Reference:\t%s/%s\n", a.Spec.ScaleTargetRef.Kind, a.Spec.ScaleTargetRef.Name)
	d.line(0, "Metrics:\t( current / target )\n")
	for i := range a.Spec.Metrics {
		var now autoscalingv2.MetricStatus
		if i < len(a.Status.CurrentMetrics) {
			now = a.Status.CurrentMetrics[i]
		}
		writeScalingMetric(d.writer, &a.Spec.Metrics[i], &now)
	}
	least := "<unset>"
	if n := a.Spec.MinReplicas; n != nil {
		least = fmt.Sprint(*n)
	}
	d.line(0, "Min replicas:\t%s\n", least)
	d.line(0, "Max replicas:\t%d\n", a.Spec.MaxReplicas)
	if b := a.Spec.Behavior; b != nil {
		d.line(0, "Behavior:\n")
		writeScalingRules(d.writer, "Up", b.ScaleUp)
		writeScalingRules(d.writer, "Down", b.ScaleDown)
	}
	d.line(0, "%s pods:\t%d current / %d desired\n", a.Spec.ScaleTargetRef.Kind, a.Status.CurrentReplicas,
		a.Status.DesiredReplicas)
	if len(a.Status.Conditions) > 0 {
		d.line(0, "Conditions:\n")
		d.line(1, "Type\tStatus\tReason\tMessage\n")
		d.line(1, "----\t------\t------\t-------\n")
		for _, c := range a.Status.Conditions {
			d.line(1, "%s\t%s\t%s\t%s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return nil
}

// writeScalingMetric writes one metric and its value, which a status of another type does not tell.
func writeScalingMetric(w *writer, m *autoscalingv2.MetricSpec, s *autoscalingv2.MetricStatus) {
	var now autoscalingv2.MetricValueStatus
	switch {
	case m.External != nil:
		if s.External != nil {
			now = s.External.Current
		}
		writeScalingAmount(w, fmt.Sprintf("%q", m.External.Metric.Name), &m.External.Target, now)
	case m.Pods != nil:
		if s.Pods != nil {
			now = s.Pods.Current
		}
		w.line(1, "%q on pods:\t%s / %s\n", m.Pods.Metric.Name, quantityText(now.AverageValue),
			quantityText(m.Pods.Target.AverageValue))
	case m.Object != nil:
		if s.Object != nil {
			now = s.Object.Current
		}
		o := m.Object.DescribedObject
		writeScalingAmount(w, fmt.Sprintf("%q on %s/%s", m.Object.Metric.Name, o.Kind, o.Name), &m.Object.Target, now)
	case m.Resource != nil:
		if s.Resource != nil {
			now = s.Resource.Current
		}
		writeScalingUsage(w, fmt.Sprintf("resource %s on pods", m.Resource.Name), &m.Resource.Target, now)
	case m.ContainerResource != nil:
		if s.ContainerResource != nil {
			now = s.ContainerResource.Current
		}
		r := m.ContainerResource
		writeScalingUsage(w, fmt.Sprintf("resource %s of container %q on pods", r.Name, r.Container), &r.Target, now)
	default:
		w.line(1, "<unknown metric type %q>\n", m.Type)
	}
}

func writeScalingAmount(w *writer, what string, t *autoscalingv2.MetricTarget, now autoscalingv2.MetricValueStatus) {
	if t.AverageValue != nil {
		w.line(1, "%s (target average value):\t%s / %s\n", what, quantityText(now.AverageValue), t.AverageValue)
		return
	}
	w.line(1, "%s (target value):\t%s / %s\n", what, quantityText(now.Value), quantityText(t.Value))
}

func writeScalingUsage(w *writer, what string, t *autoscalingv2.MetricTarget, now autoscalingv2.MetricValueStatus) {
	if t.AverageValue != nil {
		w.line(1, "%s:\t%s / %s\n", what, quantityText(now.AverageValue), t.AverageValue)
		return
	}
	current, target := "<unknown>", "<auto>"
	if n := now.AverageUtilization; n != nil {
		current = fmt.Sprintf("%d%% (%s)", *n, quantityText(now.AverageValue))
	}
	if n := t.AverageUtilization; n != nil {
		target = fmt.Sprintf("%d%%", *n)
	}
	w.line(1, "%s  (as a percentage of request):\t%s / %s\n", what, current, target)
}

func writeScalingRules(w *writer, direction string, r *autoscalingv2.HPAScalingRules) {
	if r == nil {
		return
	}
	w.line(1, "Scale %s:\n", direction)
	if n := r.StabilizationWindowSeconds; n != nil {
		w.line(2, "Stabilization Window: %d seconds\n", *n)
	}
	if len(r.Policies) == 0 {
		return
	}
	selected := autoscalingv2.MaxChangePolicySelect
	if r.SelectPolicy != nil {
		selected = *r.SelectPolicy
	}
	w.line(2, "Select Policy: %s\n", selected)
	w.line(2, "Policies:\n")
	for _, p := range r.Policies {
		w.line(3, "- Type: %s\tValue: %d\tPeriod: %d seconds\n", p.Type, p.Value, p.PeriodSeconds)
	}
}

func quantityText(q *resource.Quantity) string {
	if q == nil {
		return "<unknown>"
	}
	return q.String()
}
