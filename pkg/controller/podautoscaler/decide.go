package podautoscaler

import (
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plan is what is to be done about an autoscaler.
//
// decide fills it without a request; observe carries it out and reports the result in the same plan.
type plan struct {
	// status is what becomes of the autoscaler's status, if the scaling succeeds.
	status autoscalingv2.HorizontalPodAutoscalerStatus
	says   []event
	// replicas are what the target shall have, for a reason; they are asked for only if scale is set.
	replicas int32
	scale    bool
	reason   string
	// failed is the error that kept the metrics from being read, if any; spec means that the autoscaler itself is
	// wrong.
	failed error
	spec   bool
	// proposals are what came of each metric, for the figures.
	proposals []judged
}

// judged is one metric's answer: more (above 0), fewer (below 0) or as many replicas as now.
type judged struct {
	metric autoscalingv2.MetricSourceType
	change int32
	failed *failure
	took   time.Duration
}

type event struct{ kind, reason, message string }

func (p *plan) warn(reason, message string) {
	p.says = append(p.says, event{corev1.EventTypeWarning, reason, message})
}

// condition sets one condition; its time moves with its status only.
//
// Conditions keep their place in the list: they are changed in it, and appended only the first time.
func (p *plan) condition(t autoscalingv2.HorizontalPodAutoscalerConditionType, is bool, reason, message string,
	now time.Time) {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	for i := range p.status.Conditions {
		c := &p.status.Conditions[i]
		if c.Type != t {
			continue
		}
		if c.Status != status {
			c.Status, c.LastTransitionTime = status, metav1.NewTime(now)
		}
		c.Reason, c.Message = reason, message
		return
	}
	p.status.Conditions = append(p.status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{
		Type: t, Status: status, LastTransitionTime: metav1.NewTime(now), Reason: reason, Message: message,
	})
}

// unreachable is the plan for an autoscaler whose target's scale cannot be read. Nothing is scaled; the sizes in the
// status stay as they were. spec says that the reference itself is wrong, and not the API server.
func unreachable(a *autoscalingv2.HorizontalPodAutoscaler, err error, spec bool, now time.Time) plan {
	p := plan{status: *a.Status.DeepCopy(), failed: fmt.Errorf("reading the scale of %s: %w", targetText(a), err),
		spec: spec}
	p.warn("FailedGetScale", err.Error())
	p.condition(autoscalingv2.AbleToScale, false, "FailedGetScale",
		"the HPA controller was unable to get the target's current scale: "+err.Error(), now)
	return p
}

func targetText(a *autoscalingv2.HorizontalPodAutoscaler) string {
	return a.Spec.ScaleTargetRef.Kind + "/" + a.Namespace + "/" + a.Spec.ScaleTargetRef.Name
}

// decide returns the autoscaler's new status and the target's new size. It notes in the history what the metrics
// recommend. It has two ways:
//
//   - A size outside of minReplicas and maxReplicas is corrected at once, without metrics, stabilization or rates. A
//     target that was scaled to 0 by hand is left alone, whatever minReplicas are: that is how users disable
//     autoscaling.
//   - Otherwise the metrics propose a size (recommended), which stabilization windows damp (stabilized) and which rates
//     and the range limit (limit), in this order.
func (o *observation) decide() plan {
	p := plan{status: *o.autoscaler.Status.DeepCopy()}
	// Only who knows the target's scale has looked at the spec.
	p.status.ObservedGeneration = new(o.autoscaler.Generation)
	p.condition(autoscalingv2.AbleToScale, true, "SucceededGetScale",
		"the HPA controller was able to get the target's current scale", o.now)
	o.history.begin(o.wanted, o.now)
	if o.history.zeroed {
		p.zeroed(true, o.now) // again, if the status could not be written then
	}
	n, reason, ok := o.outOfRange()
	if !ok {
		o.follow(&p)
		return p
	}
	if n == 0 {
		p.condition(autoscalingv2.ScalingActive, false, "ScalingDisabled",
			"scaling is disabled since the replica count of the target is zero", o.now)
	}
	p.replicas, p.reason, p.scale = n, reason, n != o.wanted
	o.finish(&p, nil)
	return p
}

// follow does what the metrics ask for. A metric that cannot be read stops it only where recommended says so.
func (o *observation) follow(p *plan) {
	n, name, statuses, failed := o.recommended(p)
	if failed != nil {
		p.failed, p.spec = failed.err, failed.spec
		// The condition ScalingActive is false only if nothing was decided. The conditions of stabilization and limits
		// stay as they were: they speak of the last decision.
		if n < 0 {
			p.warn("FailedComputeMetricsReplicas", failed.err.Error())
			p.condition(autoscalingv2.ScalingActive, false, failed.reason, failed.condition, o.now)
			p.failed = fmt.Errorf("failed to compute desired number of replicas based on listed metrics for %s: %w",
				targetText(o.autoscaler), failed.err)
			p.status.CurrentReplicas, p.status.CurrentMetrics = o.wanted, statuses
			return
		}
	}
	p.condition(autoscalingv2.ScalingActive, true, "ValidMetricFound",
		"the HPA was able to successfully calculate a replica count from "+name, o.now)
	switch {
	case n > o.wanted:
		p.reason = name + " above target"
	case n < o.wanted:
		p.reason = "All metrics below target"
	}
	s := o.stabilized(n)
	p.condition(autoscalingv2.AbleToScale, true, s.reason, s.message, o.now)
	l := o.limit(s.replicas)
	p.condition(autoscalingv2.ScalingLimited, l.replicas != s.replicas, l.reason, l.message, o.now)
	p.replicas, p.scale = l.replicas, l.replicas != o.wanted
	o.finish(p, statuses)
}

// finish writes the numbers into the status. lastScaleTime is set before the target is scaled; notRescaled takes it
// back.
func (o *observation) finish(p *plan, metrics []autoscalingv2.MetricStatus) {
	p.status.CurrentReplicas, p.status.DesiredReplicas, p.status.CurrentMetrics = o.wanted, p.replicas, metrics
	if p.scale {
		p.status.LastScaleTime = &metav1.Time{Time: o.now}
	}
}

// recommended is the largest size that a metric asks for, and the statuses of all. It is below 0 if nothing can be
// done: no metric could be read, or some could not and the others want fewer replicas. A metric that is not known might
// need the replicas, so Kubernetes documents that scaling down is skipped then; scaling up is not.
func (o *observation) recommended(p *plan) (n int32, name string, statuses []autoscalingv2.MetricStatus,
	failed *failure) {
	// Without the target's pods no metric means anything, not even those of other objects.
	if f := o.selection; f != nil {
		p.warn(f.eventReason(), f.said)
		return -1, "", nil, f
	}
	specs := o.autoscaler.Spec.Metrics
	statuses = make([]autoscalingv2.MetricStatus, len(specs))
	bad := 0
	for i := range specs {
		m, f := o.propose(&specs[i], o.readings[i])
		p.proposals = append(p.proposals, judged{specs[i].Type, m.replicas - o.wanted, f, o.readings[i].took})
		if f != nil {
			p.warn(f.eventReason(), f.said)
			if failed == nil {
				failed = f
			}
			bad++
			continue
		}
		statuses[i] = m.status
		if name == "" || m.replicas > n {
			n, name = m.replicas, m.name
		}
	}
	if failed != nil {
		all := *failed
		all.err = fmt.Errorf("invalid metrics (%d invalid out of %d), first error is: %w", bad, len(specs), failed.err)
		failed = &all
	}
	if bad == len(specs) || bad > 0 && n < o.wanted {
		return -1, "", statuses, failed
	}
	return n, name, statuses, failed
}

// rescaled is the plan after the target was told its size.
//
// Only now: a size that was only planned must not be announced.
func (p *plan) rescaled(now time.Time) {
	p.condition(autoscalingv2.AbleToScale, true, "SucceededRescale",
		fmt.Sprintf("the HPA controller was able to update the target scale to %d", p.replicas), now)
	p.zeroed(p.replicas == 0, now)
	p.says = append(p.says, event{corev1.EventTypeNormal, "SuccessfulRescale",
		fmt.Sprintf("New size: %d; reason: %s", p.replicas, p.reason)})
}

// zeroed says whether the last change was one to 0.
func (p *plan) zeroed(is bool, now time.Time) {
	if is {
		p.condition(autoscalingv2.ScaledToZero, true, "ScaledToZero", "the HPA controller scaled the workload to zero", now)
		return
	}
	p.condition(autoscalingv2.ScaledToZero, false, "NotScaledToZero",
		"the HPA controller did not scale the workload to zero", now)
}

// notRescaled is the plan after the target refused its size; of the status before, the size and the time of the last
// change stay.
//
// The error of another writer's change is a conflict, and the next period decides from the new scale.
func (p *plan) notRescaled(a *autoscalingv2.HorizontalPodAutoscaler, err error, now time.Time) {
	p.warn("FailedRescale", fmt.Sprintf("New size: %d; reason: %s; error: %v", p.replicas, p.reason, err))
	p.condition(autoscalingv2.AbleToScale, false, "FailedUpdateScale",
		"the HPA controller was unable to update the target scale: "+err.Error(), now)
	p.status.DesiredReplicas, p.status.LastScaleTime = a.Status.DesiredReplicas, a.Status.LastScaleTime
	p.failed, p.scale = fmt.Errorf("failed to rescale %s: %w", targetText(a), err), false
}
