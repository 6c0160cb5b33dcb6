package autoscaling

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// defaultUtilization is the target, in percent of the pods' requests of CPU, of an autoscaler that names no metric.
const defaultUtilization = 80

func setDefaults(a *autoscaler) {
	s := &a.Spec
	if s.MinReplicas == nil {
		s.MinReplicas = new(int32(1))
	}
	if len(s.Metrics) == 0 {
		s.Metrics = []autoscalingv2.MetricSpec{cpuUtilization(defaultUtilization)}
	}
	// One direction that is said makes the other one said as well.
	if b := s.Behavior; b != nil {
		b.ScaleUp = withRules(b.ScaleUp, upRules())
		b.ScaleDown = withRules(b.ScaleDown, downRules())
	}
}

// cpuUtilization is the metric that v1's only target is in v2.
func cpuUtilization(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name:   corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
		},
	}
}

func upRules() *autoscalingv2.HPAScalingRules {
	return &autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: new(int32(0)),
		SelectPolicy:               new(autoscalingv2.MaxChangePolicySelect),
		Policies: []autoscalingv2.HPAScalingPolicy{
			{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
			{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15},
		},
	}
}

// downRules leave the window to the controller's --horizontal-pod-autoscaler-downscale-stabilization.
func downRules() *autoscalingv2.HPAScalingRules {
	return &autoscalingv2.HPAScalingRules{
		SelectPolicy: new(autoscalingv2.MaxChangePolicySelect),
		Policies: []autoscalingv2.HPAScalingPolicy{
			{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}},
	}
}

// DefaultRules are the rules of an autoscaler that has none, as if both directions had been said without any word in
// them.
func DefaultRules() *autoscalingv2.HorizontalPodAutoscalerBehavior {
	return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: upRules(), ScaleDown: downRules()}
}

// withRules fills in what r leaves out. Policies that are none are not left out, but an error.
func withRules(r, of *autoscalingv2.HPAScalingRules) *autoscalingv2.HPAScalingRules {
	if r == nil {
		return of
	}
	if r.StabilizationWindowSeconds == nil {
		r.StabilizationWindowSeconds = of.StabilizationWindowSeconds
	}
	if r.SelectPolicy == nil {
		r.SelectPolicy = of.SelectPolicy
	}
	if r.Policies == nil {
		r.Policies = of.Policies
	}
	return r
}
