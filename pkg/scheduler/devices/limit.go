package devices

import (
	"context"
	"time"
)

// limit is a context that ends at a time and carries nothing. Filter has no context of its own; a timer for each node
// would cost more than most of the choices it bounds.
type limit struct {
	end time.Time
	now func() time.Time
}

var _ context.Context = limit{}

// Deadline implements context.Context.
func (l limit) Deadline() (time.Time, bool) { return l.end, true }

// Done implements context.Context: there is no channel, Err tells.
func (limit) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (l limit) Err() error {
	if l.now().After(l.end) {
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context.
func (limit) Value(any) any { return nil }
