// Package autoscaling gives access to the kinds of autoscaling/v2 that components use.
package autoscaling

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"bonsai/pkg/apiclient"
)

// HorizontalPodAutoscalers gives access to horizontalpodautoscalers.
func HorizontalPodAutoscalers(c *apiclient.Client) *apiclient.Resource[*autoscalingv2.HorizontalPodAutoscaler] {
	return apiclient.NewResource(c, autoscalingv2.SchemeGroupVersion, "horizontalpodautoscalers",
		&autoscalingv2.HorizontalPodAutoscaler{})
}
