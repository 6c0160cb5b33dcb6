package podautoscaler

import (
	"cmp"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Config are the cluster's own words on autoscaling.
//
// The defaults are upstream's: 15 s, 5 min, 0.1, 5 min and 30 s.
type Config struct {
	// Period is the time between two looks at an autoscaler.
	Period time.Duration
	// Stabilization is the window down of autoscalers that name none.
	Stabilization time.Duration
	// Tolerance is how far metrics may be from their targets, as a share of these, before anything is scaled; of
	// autoscalers that name none.
	Tolerance float64
	// CPUInitialization is how long after its start a pod's use of CPU counts only while it is ready.
	CPUInitialization time.Duration
	// ReadinessDelay is how long after its start a pod's becoming unready is taken for its not having become ready yet.
	ReadinessDelay time.Duration
}

// observation is everything that is known when it is decided about an autoscaler.
//
// It is made by one worker for one decision. pods come from the cache and are read only.
type observation struct {
	autoscaler *autoscalingv2.HorizontalPodAutoscaler
	// wanted and present are the target's replicas, as it is asked to have and as it has.
	wanted, present int32
	// pods are the target's pods, in any phase; selection is the error that kept them from being selected.
	pods      []*corev1.Pod
	selection *failure
	// readings has one for each metric.
	readings []reading
	history  *history
	now      time.Time
	config   Config
}

// reading is the answer of a metrics API for one metric. values are milli-units: one value, several (of an external
// metric), or one of each pod by its name.
//
// An error stays in its reading: one metrics API that is down must not hide the others.
type reading struct {
	values []int64
	pods   map[string]podValue
	err    error
	// took is how long the answer took.
	took time.Duration
}

// podValue is what one pod uses: the average over the window that ended at a time.
//
// at and window together are the span that was measured; starting compares it with the time at which the pod became
// ready.
type podValue struct {
	value  int64
	at     time.Time
	window time.Duration
}

// failure is why something could not be found out.
//
// Users see it in three places with three texts, which are Kubernetes'; hence the fields.
type failure struct {
	// reason is the condition's, event the event's if that is another one.
	reason, event string
	// said is the event's message.
	said string
	// condition is the condition's message.
	condition string
	// err goes to the log, and into the status if no metric is left.
	err error
	// spec means that the autoscaler itself is wrong.
	spec bool
}

func (f *failure) eventReason() string { return cmp.Or(f.event, f.reason) }

// least is minReplicas; its default is 1.
func least(a *autoscalingv2.HorizontalPodAutoscaler) int32 {
	if n := a.Spec.MinReplicas; n != nil {
		return *n
	}
	return 1
}

// outOfRange is what an autoscaler does without looking at metrics; ok is false if it does look.
//
// The first case is a target that was scaled to 0 by hand. Where the last change by this controller was to 0, its
// condition says so, and 0 is a size as any other (KEP-2021).
func (o *observation) outOfRange() (replicas int32, reason string, ok bool) {
	a, wanted := o.autoscaler, o.wanted
	switch {
	case wanted == 0 && !o.history.zeroed && !scaledToZero(a):
		return 0, "", true
	case wanted > a.Spec.MaxReplicas:
		return a.Spec.MaxReplicas, "Current number of replicas above Spec.MaxReplicas", true
	case wanted < least(a):
		return least(a), "Current number of replicas below Spec.MinReplicas", true
	}
	return 0, "", false
}

// scaledToZero reports whether the status says that the last change of the size was one to 0.
func scaledToZero(a *autoscalingv2.HorizontalPodAutoscaler) bool {
	return slices.ContainsFunc(a.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type == autoscalingv2.ScaledToZero && c.Status == corev1.ConditionTrue
	})
}

// quantity is a value as a status has it.
func quantity(milli int64) *resource.Quantity {
	return resource.NewMilliQuantity(milli, resource.DecimalSI)
}

// amount is a value of a resource, as people write amounts of it.
func amount(name corev1.ResourceName, milli int64) *resource.Quantity {
	if name == corev1.ResourceMemory {
		return resource.NewMilliQuantity(milli, resource.BinarySI)
	}
	return quantity(milli)
}
