package podautoscaler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/autoscaling"
)

var (
	now  = time.Date(2026, 11, 22, 17, 0, 0, 0, time.UTC)
	flag = Config{Period: 15 * time.Second, Stabilization: 5 * time.Minute, Tolerance: 0.1,
		CPUInitialization: 5 * time.Minute, ReadinessDelay: 30 * time.Second}
)

// seen is a pod and, if used is not below 0, what it uses of the metric, in milli-units.
type seen struct {
	phase       corev1.PodPhase
	unready     bool
	start, turn time.Duration // how long ago it started, and became what it is
	used        int64
	request     string
}

func busy(used int64) seen {
	return seen{phase: corev1.PodRunning, start: time.Hour, turn: 50 * time.Minute, used: used, request: "100m"}
}

func (s seen) like(change func(*seen)) seen { change(&s); return s }

func pods(all ...seen) (out []*corev1.Pod, values map[string]podValue) {
	values = map[string]podValue{}
	for i, s := range all {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}}
		c := corev1.Container{Name: "c"}
		if s.request != "" {
			c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(s.request)}
		}
		p.Spec.Containers = []corev1.Container{c}
		ready := corev1.ConditionTrue
		if s.unready {
			ready = corev1.ConditionFalse
		}
		p.Status = corev1.PodStatus{
			Phase: s.phase, StartTime: &metav1.Time{Time: now.Add(-s.start)},
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.NewTime(now.Add(-s.turn))}},
		}
		out = append(out, p)
		if s.used >= 0 {
			values[p.Name] = podValue{s.used, now, 15 * time.Second}
		}
	}
	return out, values
}

func cpu(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name: "cpu", Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType,
				AverageUtilization: &percent},
		}}
}

func external(value, average string) autoscalingv2.MetricSpec {
	e := &autoscalingv2.ExternalMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "q"}}
	if value != "" {
		e.Target = autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType,
			Value: new(resource.MustParse(value))}
	} else {
		e.Target = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType,
			AverageValue: new(resource.MustParse(average))}
	}
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: e}
}

// watched is an autoscaler from 1 to 10 replicas of a target of n.
func watched(n int32, b *autoscalingv2.HorizontalPodAutoscalerBehavior,
	metrics ...autoscalingv2.MetricSpec) *observation {
	a := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "h"}}
	a.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "w", APIVersion: "apps/v1"},
		MaxReplicas:    10, Metrics: metrics, Behavior: b,
	}
	return &observation{autoscaler: a, wanted: n, present: n, history: &history{}, now: now, config: flag}
}

// rules are upstream's defaults of a behaviour, changed.
func rules(change func(*autoscalingv2.HorizontalPodAutoscalerBehavior)) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	b := autoscaling.DefaultRules()
	change(b)
	return b
}

func atOnce(b *autoscalingv2.HorizontalPodAutoscalerBehavior) {
	b.ScaleDown.StabilizationWindowSeconds = new(int32(0))
}

func policy(t autoscalingv2.HPAScalingPolicyType, value, seconds int32) []autoscalingv2.HPAScalingPolicy {
	return []autoscalingv2.HPAScalingPolicy{{Type: t, Value: value, PeriodSeconds: seconds}}
}

// text is a plan in short: the replicas, conditions by type, status and reason, and events.
func (p *plan) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %t", p.replicas, p.scale)
	for _, c := range p.status.Conditions {
		fmt.Fprintf(&b, " %s=%s", strings.TrimPrefix(string(c.Type), "Scaling"), c.Reason)
	}
	for _, e := range p.says {
		fmt.Fprintf(&b, "\n%s: %s", e.reason, e.message)
	}
	return b.String()
}

// TestCPU: the same pods and metrics were shown to kube-controller-manager v1.36.3, which decided so.
func TestCPU(t *testing.T) {
	t.Parallel()
	const follows = " AbleToScale=ReadyForNewScale Active=ValidMetricFound "
	down := rules(atOnce)
	unready := func(start, turn time.Duration) func(*seen) {
		return func(s *seen) { s.unready, s.start, s.turn = true, start, turn }
	}
	for _, c := range []struct {
		name     string
		replicas int32
		behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
		pods     []seen
		want     string
	}{
		{"above the target", 3, nil, []seen{busy(90), busy(90), busy(90)},
			"6 true" + follows + "Limited=DesiredWithinRange"},
		{"within the tolerance", 3, nil, []seen{busy(52), busy(52), busy(52)},
			"3 false" + follows + "Limited=DesiredWithinRange"},
		{"below the target", 3, down, []seen{busy(20), busy(20), busy(20)},
			"2 true" + follows + "Limited=DesiredWithinRange"},
		{"below the target, but lately not", 3, nil, []seen{busy(20), busy(20), busy(20)},
			"3 false AbleToScale=ScaleDownStabilized Active=ValidMetricFound Limited=DesiredWithinRange"},
		{"far above the target", 3, nil, []seen{busy(900), busy(900), busy(900)},
			"6 true" + follows + "Limited=ScaleUpLimit"},
		{"a missing pod on the way down", 4, down, []seen{busy(5), busy(5), busy(5), busy(-1)},
			"3 true" + follows + "Limited=DesiredWithinRange"},
		{"an unready pod", 3, nil, []seen{busy(90), busy(90), busy(90).like(unready(time.Minute, 50*time.Second))},
			"4 true" + follows + "Limited=DesiredWithinRange"},
		{"a pod that never was ready", 3, nil,
			[]seen{busy(90), busy(90), busy(90).like(unready(time.Hour, time.Hour-10*time.Second))},
			"4 true" + follows + "Limited=DesiredWithinRange"},
		{"a pod that was ready once", 3, nil,
			[]seen{busy(90), busy(90), busy(90).like(unready(time.Hour, 100*time.Second))},
			"6 true" + follows + "Limited=DesiredWithinRange"},
		{"a pod that has just become ready", 3, nil, []seen{busy(90), busy(90), busy(90).like(func(s *seen) {
			s.start, s.turn = time.Minute, 5*time.Second
		})}, "4 true" + follows + "Limited=DesiredWithinRange"},
		{"a pending pod", 3, nil, []seen{busy(90), busy(90), busy(-1).like(func(s *seen) {
			s.phase = corev1.PodPending
		})}, "4 true" + follows + "Limited=DesiredWithinRange"},
		{"a failed pod", 3, nil, []seen{busy(90), busy(90), busy(-1).like(func(s *seen) {
			s.phase = corev1.PodFailed
		})}, "4 true" + follows + "Limited=DesiredWithinRange"},
		{"one replica more a minute", 4, rules(func(b *autoscalingv2.HorizontalPodAutoscalerBehavior) {
			b.ScaleUp.Policies = policy(autoscalingv2.PodsScalingPolicy, 1, 60)
		}), []seen{busy(100), busy(100), busy(100), busy(100)}, "5 true" + follows + "Limited=ScaleUpLimit"},
		{"a fifth less a minute", 8, rules(func(b *autoscalingv2.HorizontalPodAutoscalerBehavior) {
			atOnce(b)
			b.ScaleDown.Policies = policy(autoscalingv2.PercentScalingPolicy, 20, 60)
		}), []seen{busy(1), busy(1), busy(1), busy(1), busy(1), busy(1), busy(1), busy(1)},
			"6 true" + follows + "Limited=ScaleDownLimit"},
		{"the smaller of two policies", 4, rules(func(b *autoscalingv2.HorizontalPodAutoscalerBehavior) {
			b.ScaleUp.SelectPolicy = new(autoscalingv2.MinChangePolicySelect)
			b.ScaleUp.Policies = append(policy(autoscalingv2.PodsScalingPolicy, 3, 60),
				policy(autoscalingv2.PercentScalingPolicy, 30, 60)...)
		}), []seen{busy(100), busy(100), busy(100), busy(100)}, "6 true" + follows + "Limited=ScaleUpLimit"},
		{"not upwards", 4, rules(func(b *autoscalingv2.HorizontalPodAutoscalerBehavior) {
			b.ScaleUp.SelectPolicy = new(autoscalingv2.DisabledPolicySelect)
		}), []seen{busy(100), busy(100), busy(100), busy(100)}, "4 false" + follows + "Limited=ScaleUpLimit"},
		{"upwards after a while", 4, rules(func(b *autoscalingv2.HorizontalPodAutoscalerBehavior) {
			b.ScaleUp.StabilizationWindowSeconds = new(int32(60))
		}), []seen{busy(100), busy(100), busy(100), busy(100)},
			"4 false AbleToScale=ScaleUpStabilized Active=ValidMetricFound Limited=DesiredWithinRange"},
		{"a tolerance of its own", 4, rules(func(b *autoscalingv2.HorizontalPodAutoscalerBehavior) {
			b.ScaleUp.Tolerance = new(resource.MustParse("0.5"))
		}), []seen{busy(70), busy(70), busy(70), busy(70)}, "4 false" + follows + "Limited=DesiredWithinRange"},
		{"no tolerance", 4, rules(func(b *autoscalingv2.HorizontalPodAutoscalerBehavior) {
			b.ScaleUp.Tolerance = new(resource.MustParse("0"))
		}),
			[]seen{busy(52), busy(52), busy(52), busy(52)}, "5 true" + follows + "Limited=DesiredWithinRange"},
		{"nobody asks for CPU", 1, nil, []seen{busy(90).like(func(s *seen) {
			s.request = ""
		})}, "0 false AbleToScale=SucceededGetScale Active=FailedGetResourceMetric\n" +
			"FailedGetResourceMetric: failed to get cpu utilization: missing request for cpu in container c of Pod p0\n" +
			"FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: failed to get cpu utilization: missing request for cpu in container c of Pod p0"},
		{"no pods", 1, nil, nil, "0 false AbleToScale=SucceededGetScale Active=FailedGetResourceMetric\n" +
			"FailedGetResourceMetric: failed to get cpu utilization: no pods returned by selector while calculating replica count\n" +
			"FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: failed to get cpu utilization: no pods returned by selector while calculating replica count"},
		{"too many replicas", 12, nil, nil, "10 true AbleToScale=SucceededGetScale"},
		{"none wanted", 0, nil, nil, "0 false AbleToScale=SucceededGetScale Active=ScalingDisabled"},
	} {
		o := watched(c.replicas, c.behavior, cpu(50))
		var r reading
		o.pods, r.pods = pods(c.pods...)
		o.readings = []reading{r}
		p := o.decide()
		if got := p.text(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestSeveralMetrics: the one that wants most decides; what is not known keeps replicas from being taken away.
func TestSeveralMetrics(t *testing.T) {
	t.Parallel()
	lost := reading{err: errors.New("gone")}
	value := func(milli ...int64) reading { return reading{values: milli} }
	for _, c := range []struct {
		name     string
		metrics  []autoscalingv2.MetricSpec
		readings []reading
		want     int32
		reason   string
		failed   bool
	}{
		{"two", []autoscalingv2.MetricSpec{external("10", ""), external("", "10")},
			[]reading{value(20_000), value(55_000)}, 8, "external metric q(nil) above target", false},
		{"one is lost, the other wants more", []autoscalingv2.MetricSpec{external("10", ""), external("", "10")},
			[]reading{lost, value(55_000)}, 6, "external metric q(nil) above target", true},
		{"one is lost, the other wants fewer", []autoscalingv2.MetricSpec{external("10", ""), external("", "10")},
			[]reading{lost, value(5_000)}, 0, "", true},
		{"several series", []autoscalingv2.MetricSpec{external("10", "")}, []reading{value(4_000, 1_000)}, 2,
			"All metrics below target", false},
	} {
		o := watched(4, rules(atOnce), c.metrics...)
		o.pods, _ = pods(busy(-1), busy(-1), busy(-1), busy(-1))
		o.readings = c.readings
		p := o.decide()
		if p.replicas != c.want || p.reason != c.reason || (p.failed != nil) != c.failed {
			t.Errorf("%s: %d %q %v", c.name, p.replicas, p.reason, p.failed)
		}
	}
}

// TestZero: a kube-controller-manager v1.37.2 was shown targets without replicas, and decided so. Only where its own
// last change was one to 0 does it look at the metrics.
func TestZero(t *testing.T) {
	t.Parallel()
	const active, idle = "ValidMetricFound", "ScalingDisabled"
	for _, c := range []struct {
		name   string
		least  int32
		own    corev1.ConditionStatus
		wanted int32
		value  int64
		want   int32
		active string
		zero   string
	}{
		{"down to zero", 0, "", 2, 0, 0, active, "ScaledToZero"},
		{"at zero", 0, corev1.ConditionTrue, 0, 0, 0, active, "ScaledToZero"},
		{"up from zero", 0, corev1.ConditionTrue, 0, 3_000, 3, active, "NotScaledToZero"},
		{"more are wanted at least", 2, corev1.ConditionTrue, 0, 3_000, 2, "", "NotScaledToZero"},
		{"by hand", 0, "", 0, 3_000, 0, idle, ""},
		{"by hand, after a change of its own", 0, corev1.ConditionFalse, 0, 3_000, 0, idle, "NotScaledToZero"},
		{"by hand, more are wanted at least", 1, corev1.ConditionFalse, 0, 3_000, 0, idle, "NotScaledToZero"},
		{"up by hand", 0, corev1.ConditionTrue, 1, 1_000, 1, active, "ScaledToZero"},
		{"no change to or from zero", 1, "", 2, 3_000, 3, active, "NotScaledToZero"},
	} {
		o := watched(c.wanted, rules(atOnce), external("", "1"))
		o.autoscaler.Generation, o.autoscaler.Spec.MinReplicas = 7, &c.least
		if c.own != "" {
			reason := map[corev1.ConditionStatus]string{"True": "ScaledToZero", "False": "NotScaledToZero"}[c.own]
			o.autoscaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
				{Type: autoscalingv2.ScaledToZero, Status: c.own, Reason: reason}}
		}
		o.readings = []reading{{values: []int64{c.value}}}
		p := o.decide()
		if p.scale != (p.replicas != c.wanted) {
			t.Errorf("%s: %d, %t", c.name, p.replicas, p.scale)
		}
		if p.scale {
			p.rescaled(now)
		}
		got := map[autoscalingv2.HorizontalPodAutoscalerConditionType]string{}
		for _, c := range p.status.Conditions {
			got[c.Type] = c.Reason
		}
		if p.replicas != c.want || got[autoscalingv2.ScalingActive] != c.active ||
			got[autoscalingv2.ScaledToZero] != c.zero || *p.status.ObservedGeneration != 7 {
			t.Errorf("%s: %d of generation %d, %v", c.name, p.replicas, *p.status.ObservedGeneration, got)
		}
	}
}

// TestZeroUnwritten: a target whose change to 0 is not in the status, because another one wrote at the same time, is
// not taken for one that was scaled by hand.
func TestZeroUnwritten(t *testing.T) {
	t.Parallel()
	o := watched(0, rules(atOnce), external("", "1"))
	o.autoscaler.Spec.MinReplicas, o.history.zeroed = new(int32(0)), true
	o.readings = []reading{{values: []int64{3_000}}}
	p := o.decide()
	if got, want := p.text(), "3 true AbleToScale=ReadyForNewScale ScaledToZero=ScaledToZero Active=ValidMetricFound "+
		"Limited=DesiredWithinRange"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestUnreachable: if the target's scale cannot be read, the status does not claim to have observed the spec.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	o := watched(1, nil)
	o.autoscaler.Generation, o.autoscaler.Status.ObservedGeneration = 3, new(int64(2))
	p := unreachable(o.autoscaler, errors.New("gone"), false, now)
	if c := p.status.Conditions[0]; *p.status.ObservedGeneration != 2 || c.Reason != "FailedGetScale" {
		t.Errorf("of generation %d: %+v", *p.status.ObservedGeneration, c)
	}
}

// TestLostObject: the words of an object's metric that cannot be read.
func TestLostObject(t *testing.T) {
	t.Parallel()
	o := watched(1, nil)
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: new(resource.MustParse("5"))}
	_, f := o.proposeObject(&autoscalingv2.ObjectMetricSource{Target: target,
		DescribedObject: autoscalingv2.CrossVersionObjectReference{Kind: "Service", Name: "shop"},
		Metric:          autoscalingv2.MetricIdentifier{Name: "hits"}}, reading{err: errors.New("gone")})
	if f == nil || f.said != "unable to get metric hits on Service ns/shop: gone" {
		t.Errorf("%+v", f)
	}
}

// TestConditionTimes: a condition's time is that of its last change of status, not of its words.
func TestConditionTimes(t *testing.T) {
	t.Parallel()
	var p plan
	p.condition(autoscalingv2.AbleToScale, true, "A", "a", now)
	p.condition(autoscalingv2.AbleToScale, true, "B", "b", now.Add(time.Minute))
	if c := p.status.Conditions[0]; !c.LastTransitionTime.Time.Equal(now) || c.Reason != "B" || c.Message != "b" {
		t.Errorf("%+v", c)
	}
	p.condition(autoscalingv2.AbleToScale, false, "C", "c", now.Add(2*time.Minute))
	if c := p.status.Conditions[0]; len(p.status.Conditions) != 1 ||
		!c.LastTransitionTime.Time.Equal(now.Add(2*time.Minute)) || c.Status != corev1.ConditionFalse {
		t.Errorf("%+v", c)
	}
}

// TestHistories follows autoscalers with random rules and loads for an hour: the size stays between its bounds, no step
// goes beyond what a policy allows over its whole period, and nothing goes down before the window has seen nothing
// higher.
func TestHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		b := randomRules(r)
		size, fewest, most := int32(1+r.IntN(10)), int32(1+r.IntN(4)), int32(5+r.IntN(40))
		size = min(max(size, fewest), most)
		h := &history{}
		var past []step
		at := now
		for range 120 {
			at = at.Add(time.Duration(5+r.IntN(60)) * time.Second)
			o := watched(size, b, external("", "1"))
			o.autoscaler.Spec.MinReplicas, o.autoscaler.Spec.MaxReplicas = &fewest, most
			o.history, o.now = h, at
			load := int64(1000 * r.IntN(60))
			o.readings = []reading{{values: []int64{load}}}
			p := o.decide()
			if p.replicas < fewest || p.replicas > most {
				t.Fatalf("seed %d: %d is not between %d and %d", seed, p.replicas, fewest, most)
			}
			wanted := size
			if ratio := float64(load) / 1000 / float64(size); !o.tolerances().accept(ratio) {
				wanted = int32(load / 1000)
			}
			past = append(past, step{at: at, wanted: wanted, from: size, to: p.replicas})
			if why := broken(past, b, fewest); why != "" {
				t.Fatalf("seed %d: %s\n%+v\n%+v", seed, why, b, past[max(0, len(past)-5):])
			}
			if p.scale {
				h.changed(p.replicas-size, at, b)
			}
			size = p.replicas
		}
	}
}

type step struct {
	at               time.Time
	wanted, from, to int32
}

func randomRules(r *rand.Rand) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	some := func(x *autoscalingv2.HPAScalingRules) {
		x.StabilizationWindowSeconds = new(int32(r.IntN(4) * 60))
		x.SelectPolicy = new([]autoscalingv2.ScalingPolicySelect{autoscalingv2.MaxChangePolicySelect,
			autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect}[r.IntN(3)])
		x.Policies = nil
		for range 1 + r.IntN(2) {
			if r.IntN(2) == 0 {
				x.Policies = append(x.Policies,
					policy(autoscalingv2.PodsScalingPolicy, int32(1+r.IntN(6)), int32(15+r.IntN(200)))...)
			} else {
				x.Policies = append(x.Policies,
					policy(autoscalingv2.PercentScalingPolicy, int32(10+r.IntN(90)), int32(15+r.IntN(200)))...)
			}
		}
	}
	return rules(func(b *autoscalingv2.HorizontalPodAutoscalerBehavior) { some(b.ScaleUp); some(b.ScaleDown) })
}

// broken tells what the last step does that the rules forbid, from the whole past alone.
func broken(past []step, b *autoscalingv2.HorizontalPodAutoscalerBehavior, fewest int32) string {
	last := past[len(past)-1]
	if last.to == last.from {
		return ""
	}
	up := last.to > last.from
	r := b.ScaleDown
	if up {
		r = b.ScaleUp
	}
	if *r.SelectPolicy == autoscalingv2.DisabledPolicySelect {
		return "a direction that is switched off was taken"
	}
	after := last.at.Add(-time.Duration(*r.StabilizationWindowSeconds) * time.Second)
	for _, s := range past {
		if s.at.After(after) && (up && s.wanted < last.to || !up && max(s.wanted, fewest) > last.to) {
			return fmt.Sprintf("%d was wanted in the window", s.wanted)
		}
	}
	allowed := func(p autoscalingv2.HPAScalingPolicy) bool {
		start := last.from
		for _, s := range slices.Backward(past[:len(past)-1]) {
			if !s.at.After(last.at.Add(-period(p))) {
				break
			}
			start = s.from
		}
		change, size := int64(last.to)-int64(start), int64(start)
		if !up {
			change = -change
		}
		if p.Type == autoscalingv2.PodsScalingPolicy {
			return change <= int64(p.Value)
		}
		return change*100 < size*int64(p.Value)+100 // a started replica counts
	}
	n := 0
	for _, p := range r.Policies {
		if allowed(p) {
			n++
		}
	}
	if n == 0 || *r.SelectPolicy == autoscalingv2.MinChangePolicySelect && n < len(r.Policies) {
		return "faster than the policies allow"
	}
	return ""
}
