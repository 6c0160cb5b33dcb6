package scheduler

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"bonsai/api/quantity"
)

// PodResources shows what pods ask for, and what they may use at most, as the scheduler counts it: upstream's metrics
// of /metrics/resources
// (https://kubernetes.io/docs/concepts/cluster-administration/system-metrics/#kube-scheduler-metrics). They are made
// when they are asked for.
type PodResources struct {
	// Each calls yield with each pod that is not at its end, until it returns false.
	Each func(yield func(*corev1.Pod) bool)
}

var (
	podResourceLabels  = []string{"namespace", "pod", "node", "scheduler", "priority", "resource", "unit"}
	podResourceRequest = prometheus.NewDesc("kube_pod_resource_request",
		"The amount of a resource that a pod requests, in the resource's unit.", podResourceLabels, nil)
	podResourceLimit = prometheus.NewDesc("kube_pod_resource_limit",
		"The limit of a resource that a pod may use, in the resource's unit.", podResourceLabels, nil)
)

// Describe implements prometheus.Collector.
func (r *PodResources) Describe(ch chan<- *prometheus.Desc) {
	ch <- podResourceRequest
	ch <- podResourceLimit
}

// Collect implements prometheus.Collector.
func (r *PodResources) Collect(ch chan<- prometheus.Metric) {
	r.Each(func(p *corev1.Pod) bool {
		priority := ""
		if p.Spec.Priority != nil {
			priority = strconv.Itoa(int(*p.Spec.Priority))
		}
		show := func(d *prometheus.Desc, amounts corev1.ResourceList) {
			for name, q := range amounts {
				if !q.IsZero() {
					ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, q.AsApproximateFloat64(), p.Namespace,
						p.Name, p.Spec.NodeName, p.Spec.SchedulerName, priority, string(name), unit(name))
				}
			}
		}
		show(podResourceRequest,
			resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true,
				InPlacePodLevelResourcesVerticalScalingEnabled: true}))
		show(podResourceLimit, resourcehelper.PodLimits(p, resourcehelper.PodResourcesOptions{}))
		return true
	})
}

// unit is what a resource's amounts are counted in.
func unit(name corev1.ResourceName) string {
	switch {
	case name == corev1.ResourceCPU:
		return "cores"
	case name == corev1.ResourceMemory, name == corev1.ResourceStorage, name == corev1.ResourceEphemeralStorage,
		quantity.IsHugePage(name):
		return "bytes"
	}
	return "integer"
}
