package autoscaling

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

// strategy keeps the generation of the spec (gate HPAGeneration); status.observedGeneration tells which one was looked
// at.
func strategy() resources.Typed[*autoscaler] {
	return resources.Typed[*autoscaler]{
		Default: setDefaults,
		PrepareCreate: func(a *autoscaler) {
			a.Annotations = withoutV1(a.Annotations)
			a.Status = autoscalingv2.HorizontalPodAutoscalerStatus{}
		},
		PrepareUpdate: func(a, old *autoscaler) {
			a.Annotations = withoutV1(a.Annotations)
			a.Status = *old.Status.DeepCopy()
		},
		Validate:       func(a *autoscaler) field.ErrorList { return validateAutoscaler(a, nil) },
		ValidateUpdate: validateAutoscaler,
		SpecChanged: func(a, old *autoscaler) bool {
			return !apiequality.Semantic.DeepEqual(a.Spec, old.Spec)
		},
	}
}

func statusStrategy() resources.Typed[*autoscaler] {
	s := strategy()
	s.PrepareUpdate = func(a, old *autoscaler) {
		a.Annotations = withoutV1(a.Annotations)
		a.Spec = *old.Spec.DeepCopy()
	}
	s.ValidateUpdate = func(a, _ *autoscaler) field.ErrorList { return validateStatus(&a.Status) }
	return s
}
