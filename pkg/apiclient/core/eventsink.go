package core

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
)

// eventTimeout bounds one write of an event: the next ones wait for it.
const eventTimeout = 10 * time.Second

// EventSink writes recorded events with a client's identity; it is a record.EventSink of client-go, whose calls bring
// no context. Its requests end with ctx.
type EventSink struct {
	ctx    context.Context
	events *apiclient.Resource[*corev1.Event]
}

// NewEventSink returns a sink whose requests last at most as long as ctx (the process).
func NewEventSink(ctx context.Context, c *apiclient.Client) *EventSink {
	return &EventSink{ctx: ctx, events: Events(c)}
}

func (s *EventSink) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.ctx, eventTimeout)
}

// Create stores a new event.
func (s *EventSink) Create(e *corev1.Event) (*corev1.Event, error) {
	ctx, cancel := s.bounded()
	defer cancel()
	return s.events.Create(ctx, e)
}

// Update replaces an event.
func (s *EventSink) Update(e *corev1.Event) (*corev1.Event, error) {
	ctx, cancel := s.bounded()
	defer cancel()
	return s.events.Update(ctx, e)
}

// Patch counts a repeated event up.
func (s *EventSink) Patch(old *corev1.Event, data []byte) (*corev1.Event, error) {
	ctx, cancel := s.bounded()
	defer cancel()
	return s.events.Patch(ctx, old.Namespace, old.Name, types.StrategicMergePatchType, data)
}
