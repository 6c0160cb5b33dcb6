// Package sink has where audit events go: a file that is rotated, a webhook, and what may stand before either: a queue
// that is emptied in batches, and bounds on the size of events.
package sink

import (
	"context"
	"fmt"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"bonsai/pkg/apiserver/audit"
)

// The modes in which a sink is written, in the words of --audit-log-mode.
const (
	// Blocking writes an event before the request goes on.
	Blocking = "blocking"
	// BlockingStrict is Blocking, and refuses a request whose first event cannot be written.
	BlockingStrict = "blocking-strict"
	// Batch puts events into a queue.
	Batch = "batch"
)

// modes are all modes.
func modes() []string { return []string{Batch, Blocking, BlockingStrict} }

// Options are what the flags of a sink say: --audit-log-… or --audit-webhook-….
type Options struct {
	Mode     string
	Batch    BatchOptions
	Truncate TruncateOptions
}

// Validate tells what is wrong; which is "log" or "webhook", as upstream has it in its messages.
func (o *Options) Validate(which string) (errs []error) {
	if !slices.Contains(modes(), o.Mode) {
		errs = append(errs, fmt.Errorf("invalid audit %s mode %s, allowed modes are %q", which, o.Mode,
			strings.Join(modes(), ",")))
	}
	if o.Mode == Batch {
		errs = append(errs, o.Batch.validate(which)...)
	}
	return append(errs, o.Truncate.validate(which)...)
}

// writer is what writes events somewhere.
type writer interface {
	write(ctx context.Context, events []*auditv1.Event) error
}

// put puts before a writer what the options ask for. lost is called for events that were accepted and then not kept.
func (o *Options) put(ctx context.Context, name string, to writer, lost Lost) audit.Sink {
	report := func(n int, err error) { lost(name, n, err) }
	if o.Truncate.Enabled {
		to = &truncating{o.Truncate, to, report}
	}
	if o.Mode == Batch {
		return newQueue(name, o.Batch, to, report)
	}
	return &direct{ctx: context.WithoutCancel(ctx), name: name, strict: o.Mode == BlockingStrict, to: to}
}

// Lost receives the number of events that a sink could not keep, and the reason.
type Lost func(sink string, events int, err error)

// direct writes events as they come.
type direct struct {
	// ctx is the server's, without its end: the last requests are noted, too.
	ctx    context.Context
	name   string
	strict bool
	to     writer
}

func (d *direct) Name() string                           { return d.name }
func (d *direct) Strict() bool                           { return d.strict }
func (d *direct) Process(events ...*auditv1.Event) error { return d.to.write(d.ctx, events) }
func (d *direct) Run(ctx context.Context)                { <-ctx.Done() }
