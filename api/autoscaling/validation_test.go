package autoscaling

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// TestStatus: numbers of a status are not negative, in the words of a kube-apiserver v1.37.2.
func TestStatus(t *testing.T) {
	t.Parallel()
	s := autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: -1,
		Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{
			{ObservedGeneration: new(int64(-2))}, {ObservedGeneration: new(int64(0))}, {}}}
	want := "[status.conditions[0].observedGeneration: Invalid value: -2: must be greater than or equal to 0, " +
		"status.currentReplicas: Invalid value: -1: must be greater than or equal to 0]"
	if got := validateStatus(&s).ToAggregate(); got == nil || got.Error() != want {
		t.Errorf("%v", got)
	}
	if errs := validateStatus(&autoscalingv2.HorizontalPodAutoscalerStatus{}); len(errs) > 0 {
		t.Errorf("an empty status: %v", errs)
	}
}
