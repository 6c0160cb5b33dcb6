package cli

import (
	"context"
	"errors"
	"syscall"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Signalled is the cause with which the context of a command ends when a signal ends the command.
//
// What follows from it is decided at the root (Ended). A verb has only to return when its context ends: an error if it
// is not done, and that of Interrupted if it watches, which kubectl ends with exit code 1.
type Signalled struct{ Signal syscall.Signal }

func (s *Signalled) Error() string { return s.Signal.String() }

// SignalOf is the signal that ended ctx, 0 if none did.
func SignalOf(ctx context.Context) syscall.Signal {
	if s, ok := errors.AsType[*Signalled](context.Cause(ctx)); ok {
		return s.Signal
	}
	return 0
}

// Interrupted is the error of a verb that watched or followed until a signal ended ctx: exit code 1 and no message. It
// is nil if no signal did.
func Interrupted(ctx context.Context) error {
	if SignalOf(ctx) == 0 {
		return nil
	}
	return Silent()
}

// Cause is why ctx ended, for a verb that watches: Interrupted, or what ended it otherwise (a timeout).
func Cause(ctx context.Context) error {
	if err := Interrupted(ctx); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// Ended is the exit code of a command that signal ended and that returned err, about which nothing is said: 0 if it was
// done, the code of an ExitError, else 128 and the signal's number, as a shell counts; the process is to die by the
// signal then.
func Ended(err error, signal syscall.Signal) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[*ExitError](err); ok {
		return exit.Code
	}
	if all, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		for _, e := range all.Errors() {
			if code := Ended(e, signal); code != died(signal) {
				return code
			}
		}
	}
	return died(signal)
}

func died(signal syscall.Signal) int { return 128 + int(signal) }
