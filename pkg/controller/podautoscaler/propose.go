package podautoscaler

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// proposal is what one metric asks for.
type proposal struct {
	replicas int32
	// name is how the reason of a change names the metric.
	name   string
	status autoscalingv2.MetricStatus
}

// propose judges one metric by its reading.
//
// A metric whose source is missing is refused like an unknown type; the API server stores neither.
func (o *observation) propose(m *autoscalingv2.MetricSpec, r reading) (proposal, *failure) {
	switch {
	case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
		return o.proposeObject(m.Object, r)
	case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
		return o.proposePods(m.Pods, r)
	case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
		return o.proposeResource(m.Resource, r)
	case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
		return o.proposeContainerResource(m.ContainerResource, r)
	case m.Type == autoscalingv2.ExternalMetricSourceType && m.External != nil:
		return o.proposeExternal(m.External, r)
	}
	err := fmt.Errorf("unknown metric source type %q", m.Type)
	return proposal{}, &failure{reason: "InvalidMetricSourceType", said: err.Error(),
		condition: "the HPA was unable to compute the replica count: " + err.Error(), err: err, spec: true}
}

// unable is the failure of a metric; before is what the log has before the cause.
//
// The texts are those of Kubernetes, because users and tools search for them.
func unable(reason, before string, cause error) *failure {
	return &failure{
		reason: reason, said: cause.Error(),
		condition: "the HPA was unable to compute the replica count: " + cause.Error(),
		err:       fmt.Errorf("%s: %w", before, cause),
	}
}

// proposeObject judges a metric of one object: by its value, to which all pods contribute, or by the share of each
// replica.
func (o *observation) proposeObject(m *autoscalingv2.ObjectMetricSource, r reading) (proposal, *failure) {
	const reason, before = "FailedGetObjectMetric", "failed to get object metric value"
	status := &autoscalingv2.ObjectMetricStatus{
		DescribedObject: m.DescribedObject,
		Metric:          autoscalingv2.MetricIdentifier{Name: m.Metric.Name, Selector: m.Metric.Selector},
	}
	p := proposal{name: fmt.Sprintf("%s metric %s", m.DescribedObject.Kind, m.Metric.Name)}
	p.status = autoscalingv2.MetricStatus{Type: autoscalingv2.ObjectMetricSourceType, Object: status}
	cause := func(err error) error {
		return fmt.Errorf("unable to get metric %s on %s %s/%s: %w", m.Metric.Name, m.DescribedObject.Kind,
			o.autoscaler.Namespace, m.DescribedObject.Name, err)
	}
	target, perPod := average(&m.Target)
	if m.Target.Type == autoscalingv2.AverageValueMetricType && perPod {
		if r.err != nil {
			return proposal{}, unable(reason, before+fmt.Sprintf(": failed to get %s object metric", m.Metric.Name),
				cause(r.err))
		}
		var share int64
		p.replicas, share = o.ofShare(r.values[0], target)
		status.Current.AverageValue = quantity(share)
		return p, nil
	}
	if m.Target.Value == nil {
		return proposal{}, unable(reason, before,
			fmt.Errorf("invalid object metric source: neither a value target nor an average value target was set"))
	}
	if r.err != nil {
		return proposal{}, unable(reason, before, cause(r.err))
	}
	n, err := o.ofValue(r.values[0], m.Target.Value.MilliValue())
	if err != nil {
		return proposal{}, unable(reason, before, err)
	}
	p.replicas, status.Current.Value = n, quantity(r.values[0])
	return p, nil
}

// proposePods judges a custom metric of the pods by its average. Readiness does not matter, as it is not CPU.
func (o *observation) proposePods(m *autoscalingv2.PodsMetricSource, r reading) (proposal, *failure) {
	const reason, before = "FailedGetPodsMetric", "failed to get pods metric value"
	if r.err != nil {
		return proposal{}, unable(reason, before, fmt.Errorf("unable to get metric %s: %w", m.Metric.Name, r.err))
	}
	target, _ := average(&m.Target)
	n, seen, err := o.raw(r, target, "")
	if err != nil {
		return proposal{}, unable(reason, before, err)
	}
	return proposal{replicas: n, name: "pods metric " + m.Metric.Name, status: autoscalingv2.MetricStatus{
		Type: autoscalingv2.PodsMetricSourceType,
		Pods: &autoscalingv2.PodsMetricStatus{
			Metric:  autoscalingv2.MetricIdentifier{Name: m.Metric.Name, Selector: m.Metric.Selector},
			Current: autoscalingv2.MetricValueStatus{AverageValue: quantity(seen.average)},
		},
	}}, nil
}

// raw judges a metric by the milli-units of each pod.
func (o *observation) raw(r reading, target int64, name corev1.ResourceName) (int32, usage, error) {
	if len(o.pods) == 0 {
		return 0, usage{}, errNoPods()
	}
	s := sortPods(o.pods, r.pods, name == corev1.ResourceCPU, o.now, o.config)
	return o.ofPods(s, byAverage(target), func(string) int64 { return target })
}

func (o *observation) proposeResource(m *autoscalingv2.ResourceMetricSource, r reading) (proposal, *failure) {
	n, current, name, err := o.ofResource(m.Name, "", &m.Target, r)
	if err != nil {
		return proposal{}, unable("FailedGetResourceMetric",
			fmt.Sprintf("failed to get %s resource metric value", m.Name), err)
	}
	return proposal{replicas: n, name: fmt.Sprintf("%s resource%s", m.Name, name), status: autoscalingv2.MetricStatus{
		Type:     autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricStatus{Name: m.Name, Current: current},
	}}, nil
}

func (o *observation) proposeContainerResource(m *autoscalingv2.ContainerResourceMetricSource, r reading) (proposal,
	*failure) {
	n, current, name, err := o.ofResource(m.Name, m.Container, &m.Target, r)
	if err != nil {
		return proposal{}, unable("FailedGetContainerResourceMetric",
			fmt.Sprintf("failed to get %s container metric value", m.Container), err)
	}
	return proposal{replicas: n, name: fmt.Sprintf("%s container resource%s", m.Name, name),
		status: autoscalingv2.MetricStatus{
			Type: autoscalingv2.ContainerResourceMetricSourceType,
			ContainerResource: &autoscalingv2.ContainerResourceMetricStatus{Name: m.Name, Container: m.Container,
				Current: current},
		}}, nil
}

// ofResource judges a resource of pods, or of their container of a name (not ""); suffix names what the target is a
// share of.
//
// A target has an average value or a utilization. The value wins, as validation allows only one of them.
func (o *observation) ofResource(name corev1.ResourceName, container string, t *autoscalingv2.MetricTarget,
	r reading) (n int32, current autoscalingv2.MetricValueStatus, suffix string, err error) {
	if target, ok := average(t); ok {
		var seen usage
		if err = r.err; err != nil {
			err = fmt.Errorf("unable to get metrics for resource %s: %w", name, err)
		} else {
			n, seen, err = o.raw(r, target, name)
		}
		if err != nil {
			return 0, current, "", fmt.Errorf("failed to get %s usage: %w", name, err)
		}
		current.AverageValue = amount(name, seen.average)
		return n, current, "", nil
	}
	if t.AverageUtilization == nil {
		return 0, current, "", fmt.Errorf(
			"invalid resource metric source: neither an average utilization target nor an average value (usage) target was set")
	}
	n, seen, err := o.utilized(name, container, *t.AverageUtilization, r)
	if err != nil {
		return 0, current, "", fmt.Errorf("failed to get %s utilization: %w", name, err)
	}
	current.AverageUtilization, current.AverageValue = &seen.utilization, amount(name, seen.average)
	return n, current, " utilization (percentage of request)", nil
}

// utilized judges a resource by the percentage of the requests. All pods of the target need a request, also those
// without a value: it says what they are assumed to use.
func (o *observation) utilized(name corev1.ResourceName, container string, target int32, r reading) (int32, usage,
	error) {
	if r.err != nil {
		return 0, usage{}, fmt.Errorf("unable to get metrics for resource %s: %w", name, r.err)
	}
	if len(o.pods) == 0 {
		return 0, usage{}, errNoPods()
	}
	asked, err := requests(o.pods, name, container)
	if err != nil {
		return 0, usage{}, err
	}
	s := sortPods(o.pods, r.pods, name == corev1.ResourceCPU, o.now, o.config)
	return o.ofPods(s, byRequests(asked, target), func(pod string) int64 {
		return asked[pod] * fallbackUtilization(target) / 100
	})
}

// proposeExternal judges a metric of something outside of the cluster, such as the length of a queue. Several values
// are added up.
func (o *observation) proposeExternal(m *autoscalingv2.ExternalMetricSource, r reading) (proposal, *failure) {
	const reason = "FailedGetExternalMetric"
	before := fmt.Sprintf("failed to get %s external metric value", m.Metric.Name)
	status := &autoscalingv2.ExternalMetricStatus{
		Metric: autoscalingv2.MetricIdentifier{Name: m.Metric.Name, Selector: m.Metric.Selector}}
	p := proposal{
		name:   fmt.Sprintf("external metric %s(%+v)", m.Metric.Name, m.Metric.Selector),
		status: autoscalingv2.MetricStatus{Type: autoscalingv2.ExternalMetricSourceType, External: status},
	}
	cause := func(err error) error {
		return fmt.Errorf("unable to get external metric %s/%s/%+v: %w", o.autoscaler.Namespace, m.Metric.Name,
			m.Metric.Selector, err)
	}
	// The API may return one value for each matching series.
	var sum int64
	for _, v := range r.values {
		sum += v
	}
	if target, ok := average(&m.Target); ok {
		if r.err != nil {
			return proposal{}, unable(reason, before+fmt.Sprintf(": failed to get %s external metric", m.Metric.Name),
				cause(r.err))
		}
		var share int64
		p.replicas, share = o.ofShare(sum, target)
		status.Current.AverageValue = quantity(share)
		return p, nil
	}
	if m.Target.Value == nil {
		return proposal{}, unable(reason, before,
			fmt.Errorf("invalid external metric source: neither a value target nor an average value target was set"))
	}
	before += ": failed to get external metric " + m.Metric.Name
	if r.err != nil {
		return proposal{}, unable(reason, before, cause(r.err))
	}
	n, err := o.ofValue(sum, m.Target.Value.MilliValue())
	if err != nil {
		return proposal{}, unable(reason, before, err)
	}
	p.replicas, status.Current.Value = n, quantity(sum)
	return p, nil
}
