package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bonsai/pkg/kubectl/cli"
)

// grace is how long a command that a signal ends may take to undo what it must: restore the terminal, delete the pod of
// "run --rm". A command that reads standard input or waits for a silent server does not return at all.
const grace = 500 * time.Millisecond

// untilSignal runs command and returns its exit code. A signal ends command's context (cli.Signalled); if the code then
// says so, or the grace is over, the process dies by that signal, so that a shell sees what ended it. A second signal
// acts at once.
func untilSignal(ctx context.Context, command func(context.Context) int) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as under nohup
			signal.Notify(signals, s)
		}
	}
	code := make(chan int, 1)
	go func() { code <- command(ctx) }()

	var got syscall.Signal
	select {
	case c := <-code:
		return c
	case s := <-signals:
		got = s.(syscall.Signal)
	}
	signal.Reset()
	cancel(&cli.Signalled{Signal: got})
	died := 128 + int(got)
	select {
	case c := <-code:
		if c != died {
			return c
		}
	case <-time.After(grace):
	}
	// A signal to the thread that sends it is delivered before the call returns; one to the process is some thread's,
	// some time.
	runtime.LockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), got)
	return died
}
