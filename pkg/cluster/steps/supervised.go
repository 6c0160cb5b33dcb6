package steps

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"bonsai/pkg/cluster/supervise"
)

// errSupervisorEnded is the cause of the end of a WhileSupervised.
var errSupervisorEnded = errors.New(
	"the supervisor has ended, and the cluster with it (bonsai logs bonsai; bonsai start starts it again)")

// WhileSupervised returns a context for waits that need the cluster's supervisor. It ends, with a cause that says so,
// soon after the supervisor has ended: nothing that a wait hopes for comes after that. The supervisor must answer when
// WhileSupervised is called. The caller calls done when the wait is over.
func (s Start) WhileSupervised(ctx context.Context) (supervised context.Context, done context.CancelFunc) {
	ctx, fail := context.WithCancelCause(ctx)
	go look(ctx, func() (over bool) {
		_, err := supervise.Ask(ctx, s.layout.Socket("supervisor"))
		if hasEnded(err) {
			fail(errSupervisorEnded)
		}
		return hasEnded(err)
	})
	return ctx, func() { fail(nil) }
}

// hasEnded reports whether the error of a question means that nobody listens at the control socket any more. A process
// that was killed leaves the socket, which then refuses. A process that is slow or frozen still has connections queued
// in the kernel, and the question ends with a timeout.
func hasEnded(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}
