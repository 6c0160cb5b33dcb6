package scheduler

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.39.0"
	oteltrace "go.opentelemetry.io/otel/trace"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/trace"
)

// longPlugin is how long a plug-in may take without a span of its own.
const longPlugin = time.Millisecond

// maxPlugins bounds the spans of plug-ins of one pod's try.
const maxPlugins = 32

// The attributes that the semantic conventions have no names for.
const (
	attempts  = attribute.Key("bonsai.scheduler.attempts")
	point     = attribute.Key("bonsai.scheduler.extension_point")
	plugin    = attribute.Key("bonsai.scheduler.plugin")
	rejecters = attribute.Key("bonsai.scheduler.rejecting_plugins")
)

// stepIDs are the ids of the spans that the plug-ins of a try belong to, before these are over.
type stepIDs struct{ decide, bind oteltrace.SpanID }

// stepsKey is where a cycle's state has its *stepIDs.
const stepsKey = "bonsai/spans"

// begin records the time that a pod has waited in the queue, and has its plug-ins timed, if the pod is recorded.
func (s *Scheduler) begin(state *framework.CycleState, pod *framework.QueuedPod, start time.Time) {
	if !s.Tracer.Records(pod.Pod.UID) {
		return
	}
	o := trace.Pod(pod.Pod)
	s.Tracer.Step(o, trace.Step{Name: "scheduler.queue", Start: pod.Added, End: start,
		Attributes: []attribute.KeyValue{attempts.Int(pod.Attempts)}})
	ids := &stepIDs{decide: trace.NewID(), bind: trace.NewID()}
	state.Write(stepsKey, ids)
	noted := 0
	state.Laps = &framework.Laps{Now: s.Now, Longer: longPlugin,
		Note: func(at, name string, begun, end time.Time) {
			if noted++; noted > maxPlugins {
				return
			}
			step := trace.Step{Name: "scheduler.plugin", Parent: ids.decide, Start: begun, End: end,
				Attributes: []attribute.KeyValue{point.String(at), plugin.String(name)}}
			if at == "PreBind" || at == "Bind" {
				step.Parent = ids.bind
			}
			s.Tracer.Step(o, step)
		}}
}

// errNoNode is what a decision without a node says. The reasons are the pod's condition and event; the span names the
// plug-ins that have turned nodes down.
var errNoNode = errors.New("no node fits")

// errInternal is what a decision that failed says.
var errInternal = errors.New("scheduling failed")

// didDecide records a decision.
func (s *Scheduler) didDecide(state *framework.CycleState, pod *framework.QueuedPod, node string, start,
	decided time.Time, err error) {
	if state.Laps == nil {
		return
	}
	step := trace.Step{Name: "scheduler.decide", ID: state.Read(stepsKey).(*stepIDs).decide, Start: start, End: decided}
	fit := (*framework.FitError)(nil)
	switch {
	case err == nil:
		step.Attributes = []attribute.KeyValue{semconv.K8SNodeName(node)}
	case errors.As(err, &fit):
		step.Err = errNoNode
		names := slices.Sorted(maps.Keys(fit.Diagnosis.Plugins))
		step.Attributes = []attribute.KeyValue{rejecters.String(strings.Join(names, ","))}
	default:
		step.Err = errInternal
	}
	s.Tracer.Step(trace.Pod(pod.Pod), step)
}

// did records the binding.
func (b *binding) did(begun, end time.Time, st *framework.Status) {
	if b.state.Laps == nil {
		return
	}
	step := trace.Step{Name: "scheduler.bind", ID: b.state.Read(stepsKey).(*stepIDs).bind, Start: begun, End: end,
		Attributes: []attribute.KeyValue{semconv.K8SNodeName(b.node)}}
	if !st.IsSuccess() {
		step.Err = errors.New("not bound: " + st.Plugin)
	}
	b.s.Tracer.Step(trace.Pod(b.pod.Pod), step)
}
