// Package autoscaling defines the kinds of the API group autoscaling (v1 and v2): their row, defaults,
// validation, strategies, table columns and the conversion between the versions, as pure functions.
package autoscaling

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/resources"
)

// autoscaler is the stored kind; v1 is a view of it.
type autoscaler = autoscalingv2.HorizontalPodAutoscaler

// Rows returns the resources of the group.
func Rows() []resources.Row {
	spec, status := autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc(),
		autoscalingv2.HorizontalPodAutoscalerStatus{}.SwaggerDoc()
	return []resources.Row{{
		GVK: autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), Resource: "horizontalpodautoscalers",
		Singular:    "horizontalpodautoscaler",
		Namespaced:  true,
		ShortNames:  []string{"hpa"},
		Categories:  []string{"all"},
		StoragePath: "horizontalpodautoscalers",
		New:         resources.Make[autoscaler],
		Versions: []resources.Version{
			{Name: autoscalingv2.SchemeGroupVersion.Version},
			{
				Name:  autoscalingv1.SchemeGroupVersion.Version,
				New:   resources.Make[autoscalingv1.HorizontalPodAutoscaler],
				ToHub: resources.Convert(fromV1), FromHub: resources.Convert(toV1),
			},
		},
		Strategy:     strategy().Strategy(),
		Subresources: []resources.Subresource{resources.Status(statusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Reference", spec["scaleTargetRef"]),
			resources.Column("Targets", spec["metrics"]),
			resources.Column("MinPods", spec["minReplicas"]),
			resources.Column("MaxPods", spec["maxReplicas"]),
			resources.Column("Replicas", status["currentReplicas"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(cells),
	}}
}
