package trace

import (
	"context"
	"sync"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"

	"bonsai/api/traces"
)

// Round is one reconciliation of a controller. A nil *Round records nothing.
type Round struct {
	tracer     *Tracer
	controller string
	begun      time.Time
	id         oteltrace.SpanID

	mu    sync.Mutex    // rounds may make several objects at once
	owner traces.Object // of what was made; without a UID nothing was made for an owner
}

// Round begins a round of the named controller.
func (t *Tracer) Round(controller string, begun time.Time) *Round {
	if t == nil || t.below == 0 {
		return nil
	}
	return &Round{tracer: t, controller: controller, begun: begun, id: NewID()}
}

type tracerKey struct{}

// With returns a context from which those who run under it take their Tracer.
func With(ctx context.Context, t *Tracer) context.Context {
	return context.WithValue(ctx, tracerKey{}, t)
}

// From returns the Tracer of ctx, nil if it has none.
func From(ctx context.Context) *Tracer {
	t, _ := ctx.Value(tracerKey{}).(*Tracer)
	return t
}

// Made records, in the trace of an object that the round has made at that time, that it did: a span
// "<component>.<controller>", which links to the round in the trace of the object's owner.
func (r *Round) Made(o Object, at time.Time) {
	if r == nil {
		return
	}
	if o.Owner.UID != "" {
		r.mu.Lock()
		r.owner = o.Owner
		if r.owner.Group != "" || r.owner.Kind != "Node" { // of all owners that have no namespace the usual one
			r.owner.Namespace = o.Namespace
		}
		r.mu.Unlock()
	}
	r.tracer.Step(o, Step{Name: r.tracer.component + "." + r.controller, Start: r.begun, End: at,
		Links: ToOwner(o.Owner.UID, r.id)})
}

// End records the round itself, if it has made anything for an owner: a span "<controller>.reconcile" of the owner.
// Other rounds, most of them, record nothing.
func (r *Round) End(at time.Time, err error) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owner.UID != "" {
		r.tracer.Step(Object{Object: r.owner}, Step{Name: r.controller + ".reconcile", Start: r.begun, End: at,
			Err: err, ID: r.id})
	}
}
