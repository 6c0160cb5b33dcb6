package autoscaling

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/api/resources"
)

func cells(a *autoscaler, now time.Time) []any {
	least := "<unset>"
	if n := a.Spec.MinReplicas; n != nil {
		least = strconv.Itoa(int(*n))
	}
	return []any{
		a.Name, a.Spec.ScaleTargetRef.Kind + "/" + a.Spec.ScaleTargetRef.Name,
		targetsText(a.Spec.Metrics, a.Status.CurrentMetrics),
		least, int64(a.Spec.MaxReplicas), int64(a.Status.CurrentReplicas), resources.Age(a.CreationTimestamp, now),
	}
}

// shownTargets is how many metrics a table has room for.
const shownTargets = 2

const unknown = "<unknown>"

func targetsText(specs []autoscalingv2.MetricSpec, current []autoscalingv2.MetricStatus) string {
	if len(specs) == 0 {
		return "<none>"
	}
	texts := make([]string, 0, shownTargets)
	for i := range specs[:min(len(specs), shownTargets)] {
		var status autoscalingv2.MetricStatus
		if i < len(current) {
			status = current[i]
		}
		texts = append(texts, targetText(&specs[i], &status))
	}
	text := strings.Join(texts, ", ")
	if more := len(specs) - shownTargets; more > 0 {
		text += fmt.Sprintf(" + %d more...", more)
	}
	return text
}

// targetText is one metric as "current/target". A status of another type tells nothing of it.
func targetText(m *autoscalingv2.MetricSpec, s *autoscalingv2.MetricStatus) string {
	var now autoscalingv2.MetricValueStatus
	switch {
	case m.External != nil:
		if s.External != nil {
			now = s.External.Current
		}
		return amountText(&m.External.Target, now)
	case m.Pods != nil:
		if s.Pods != nil {
			now = s.Pods.Current
		}
		return quantityText(now.AverageValue) + "/" + quantityText(m.Pods.Target.AverageValue)
	case m.Object != nil:
		if s.Object != nil {
			now = s.Object.Current
		}
		return amountText(&m.Object.Target, now)
	case m.Resource != nil:
		if s.Resource != nil {
			now = s.Resource.Current
		}
		return string(m.Resource.Name) + ": " + usageText(&m.Resource.Target, now)
	case m.ContainerResource != nil:
		if s.ContainerResource != nil {
			now = s.ContainerResource.Current
		}
		return string(m.ContainerResource.Name) + ": " + usageText(&m.ContainerResource.Target, now)
	}
	return "<unknown type>"
}

func amountText(t *autoscalingv2.MetricTarget, now autoscalingv2.MetricValueStatus) string {
	if t.AverageValue != nil {
		return quantityText(now.AverageValue) + "/" + t.AverageValue.String() + " (avg)"
	}
	return quantityText(now.Value) + "/" + quantityText(t.Value)
}

func usageText(t *autoscalingv2.MetricTarget, now autoscalingv2.MetricValueStatus) string {
	if t.AverageValue != nil {
		return quantityText(now.AverageValue) + "/" + t.AverageValue.String()
	}
	target := "<auto>"
	if t.AverageUtilization != nil {
		target = percentText(t.AverageUtilization)
	}
	return percentText(now.AverageUtilization) + "/" + target
}

func quantityText(q *resource.Quantity) string {
	if q == nil {
		return unknown
	}
	return q.String()
}

func percentText(n *int32) string {
	if n == nil {
		return unknown
	}
	return strconv.Itoa(int(*n)) + "%"
}
