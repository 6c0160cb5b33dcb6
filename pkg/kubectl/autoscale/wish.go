package autoscale

import (
	"fmt"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// wish is what the pods shall use on average; nil where nothing is said.
type wish struct{ cpu, memory *autoscalingv2.MetricTarget }

// readWish reads --cpu-percent (not above 0: not said), --cpu and --memory ("": not said).
func readWish(percent int32, cpu, memory string) (w wish, err error) {
	if percent > 0 {
		w.cpu = &autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}
	}
	if cpu != "" {
		if w.cpu, err = readTarget(corev1.ResourceCPU, cpu, "m"); err != nil {
			return wish{}, err
		}
	}
	if memory != "" {
		if w.memory, err = readTarget(corev1.ResourceMemory, memory, "Mi"); err != nil {
			return wish{}, err
		}
	}
	return w, nil
}

// readTarget reads a percentage of the request or an amount, of the given unit if it names none.
func readTarget(name corev1.ResourceName, text, unit string) (*autoscalingv2.MetricTarget, error) {
	if share, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.ParseInt(share, 10, 32)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("invalid percentage value: %s", share)
		}
		return &autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType,
			AverageUtilization: new(int32(n))}, nil
	}
	amount := text
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		amount = strconv.FormatFloat(n, 'f', -1, 64) + unit
	}
	q, err := resource.ParseQuantity(amount)
	if err != nil {
		return nil, fmt.Errorf("invalid resource %s value: %s", name, text)
	}
	return &autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &q}, nil
}

func (w wish) metrics() []autoscalingv2.MetricSpec {
	var out []autoscalingv2.MetricSpec
	add := func(name corev1.ResourceName, t *autoscalingv2.MetricTarget) {
		if t != nil {
			out = append(out, autoscalingv2.MetricSpec{
				Type:     autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: name, Target: *t},
			})
		}
	}
	add(corev1.ResourceCPU, w.cpu)
	add(corev1.ResourceMemory, w.memory)
	return out
}

// onlyPercent is the wish as v1 can say it: nothing (nil), or CPU in percent of the request.
func (w wish) onlyPercent() (percent *int32, ok bool) {
	switch {
	case w.memory != nil:
		return nil, false
	case w.cpu == nil:
		return nil, true
	}
	return w.cpu.AverageUtilization, w.cpu.AverageUtilization != nil
}
