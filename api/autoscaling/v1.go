package autoscaling

import (
	"encoding/json"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations of v1, which has no fields for these. A stored autoscaler has none of them.
const (
	metricsAnnotation        = "autoscaling.alpha.kubernetes.io/metrics"
	behaviorAnnotation       = "autoscaling.alpha.kubernetes.io/behavior"
	currentMetricsAnnotation = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation     = "autoscaling.alpha.kubernetes.io/conditions"
)

// The behaviour in v1's annotation: its fields are named as Kubernetes' own Go types have them, and all are written.
type (
	v1Behavior struct {
		ScaleUp   *v1Rules
		ScaleDown *v1Rules
	}
	v1Rules struct {
		StabilizationWindowSeconds *int32
		SelectPolicy               *autoscalingv2.ScalingPolicySelect
		Policies                   []v1Policy
		Tolerance                  *resource.Quantity
	}
	v1Policy struct {
		Type          autoscalingv2.HPAScalingPolicyType
		Value         int32
		PeriodSeconds int32
	}
)

// withoutV1 is annotations without those of v1, which are what other fields say; nil if none is left.
func withoutV1(annotations map[string]string) map[string]string {
	names := []string{metricsAnnotation, behaviorAnnotation, currentMetricsAnnotation, conditionsAnnotation}
	var out map[string]string
	for _, name := range names {
		if _, ok := annotations[name]; !ok {
			continue
		}
		if out == nil {
			out = maps.Clone(annotations)
		}
		delete(out, name)
	}
	switch {
	case out == nil:
		return annotations
	case len(out) == 0:
		return nil
	}
	return out
}

// toV1 makes v1 of a stored autoscaler. The first target for the utilization of CPU is v1's only one, further ones are
// lost; every other metric is in an annotation.
func toV1(in *autoscaler) *autoscalingv1.HorizontalPodAutoscaler {
	out := &autoscalingv1.HorizontalPodAutoscaler{
		TypeMeta: metav1.TypeMeta{APIVersion: autoscalingv1.SchemeGroupVersion.String(),
			Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: in.ObjectMeta,
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas,
			MaxReplicas:    in.Spec.MaxReplicas,
		},
		Status: autoscalingv1.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration,
			LastScaleTime:      in.Status.LastScaleTime,
			CurrentReplicas:    in.Status.CurrentReplicas,
			DesiredReplicas:    in.Status.DesiredReplicas,
		},
	}
	var others []autoscalingv1.MetricSpec
	for i := range in.Spec.Metrics {
		m := &in.Spec.Metrics[i]
		switch {
		case !isCPUUtilization(m):
			others = append(others, specToV1(m))
		case out.Spec.TargetCPUUtilizationPercentage == nil:
			out.Spec.TargetCPUUtilizationPercentage = m.Resource.Target.AverageUtilization
		}
	}
	var current []autoscalingv1.MetricStatus
	for i := range in.Status.CurrentMetrics {
		m := &in.Status.CurrentMetrics[i]
		current = append(current, statusToV1(m))
		if r := m.Resource; m.Type == autoscalingv2.ResourceMetricSourceType && r != nil &&
			r.Name == corev1.ResourceCPU && r.Current.AverageUtilization != nil {
			out.Status.CurrentCPUUtilizationPercentage = r.Current.AverageUtilization
		}
	}
	var conditions []autoscalingv1.HorizontalPodAutoscalerCondition
	for _, c := range in.Status.Conditions {
		conditions = append(conditions, autoscalingv1.HorizontalPodAutoscalerCondition{
			Type: autoscalingv1.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	a := annotations{to: withoutV1(in.Annotations)}
	if len(others) > 0 {
		a.set(metricsAnnotation, others)
	}
	if len(current) > 0 {
		a.set(currentMetricsAnnotation, current)
	}
	if len(conditions) > 0 {
		a.set(conditionsAnnotation, conditions)
	}
	if b := in.Spec.Behavior; b != nil {
		a.set(behaviorAnnotation, v1Behavior{rulesToV1(b.ScaleUp), rulesToV1(b.ScaleDown)})
	}
	out.Annotations = a.to
	return out
}

func isCPUUtilization(m *autoscalingv2.MetricSpec) bool {
	return m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil &&
		m.Resource.Name == corev1.ResourceCPU &&
		m.Resource.Target.AverageUtilization != nil
}

// annotations are written to a copy, made at the first write.
type annotations struct {
	to     map[string]string
	cloned bool
}

// set writes value as JSON, which every value of these types has.
func (a *annotations) set(name string, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		return
	}
	if !a.cloned {
		clone := make(map[string]string, len(a.to)+1)
		maps.Copy(clone, a.to)
		a.to, a.cloned = clone, true
	}
	a.to[name] = string(raw)
}

// read reads an annotation of v1. One that is no JSON of the type says nothing.
func read[T any](from map[string]string, name string) (value T, ok bool) {
	text, ok := from[name]
	if !ok || json.Unmarshal([]byte(text), &value) != nil {
		var none T
		return none, false
	}
	return value, true
}

// fromV1 makes the stored autoscaler of one of v1: what the annotations say comes before the fields for CPU.
func fromV1(in *autoscalingv1.HorizontalPodAutoscaler) *autoscaler {
	out := &autoscaler{
		TypeMeta: metav1.TypeMeta{APIVersion: autoscalingv2.SchemeGroupVersion.String(),
			Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: in.ObjectMeta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference(in.Spec.ScaleTargetRef),
			MinReplicas:    in.Spec.MinReplicas,
			MaxReplicas:    in.Spec.MaxReplicas,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			ObservedGeneration: in.Status.ObservedGeneration,
			LastScaleTime:      in.Status.LastScaleTime,
			CurrentReplicas:    in.Status.CurrentReplicas,
			DesiredReplicas:    in.Status.DesiredReplicas,
		},
	}
	out.Annotations = withoutV1(in.Annotations)
	metrics, _ := read[[]autoscalingv1.MetricSpec](in.Annotations, metricsAnnotation)
	for i := range metrics {
		out.Spec.Metrics = append(out.Spec.Metrics, specFromV1(&metrics[i]))
	}
	if n := in.Spec.TargetCPUUtilizationPercentage; n != nil {
		out.Spec.Metrics = append(out.Spec.Metrics, cpuUtilization(*n))
	}
	if b, ok := read[v1Behavior](in.Annotations, behaviorAnnotation); ok {
		out.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rulesFromV1(b.ScaleUp),
			ScaleDown: rulesFromV1(b.ScaleDown)}
	}
	current, ok := read[[]autoscalingv1.MetricStatus](in.Annotations, currentMetricsAnnotation)
	if n := in.Status.CurrentCPUUtilizationPercentage; !ok && n != nil {
		out.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{Name: corev1.ResourceCPU,
				Current: autoscalingv2.MetricValueStatus{AverageUtilization: n}},
		}}
	}
	for i := range current {
		out.Status.CurrentMetrics = append(out.Status.CurrentMetrics, statusFromV1(&current[i]))
	}
	conditions, _ := read[[]autoscalingv1.HorizontalPodAutoscalerCondition](in.Annotations, conditionsAnnotation)
	for _, c := range conditions {
		out.Status.Conditions = append(out.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{
			Type: autoscalingv2.HorizontalPodAutoscalerConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	return out
}

func rulesToV1(in *autoscalingv2.HPAScalingRules) *v1Rules {
	if in == nil {
		return nil
	}
	out := &v1Rules{StabilizationWindowSeconds: in.StabilizationWindowSeconds, SelectPolicy: in.SelectPolicy,
		Tolerance: in.Tolerance}
	for _, p := range in.Policies {
		out.Policies = append(out.Policies, v1Policy(p))
	}
	return out
}

func rulesFromV1(in *v1Rules) *autoscalingv2.HPAScalingRules {
	if in == nil {
		return nil
	}
	out := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: in.StabilizationWindowSeconds,
		SelectPolicy: in.SelectPolicy, Tolerance: in.Tolerance}
	for _, p := range in.Policies {
		out.Policies = append(out.Policies, autoscalingv2.HPAScalingPolicy(p))
	}
	return out
}
