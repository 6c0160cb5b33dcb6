package host

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHungUp: whether the other end of a pipe is closed is found out under signals, too.
func TestHungUp(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	stop, ended := make(chan struct{}), make(chan error)
	go signalAlways(unix.Gettid(), stop, ended)
	for range 50_000 {
		if closed, err := hungUp(read); closed || err != nil {
			t.Fatalf("with an open end: %v, %v", closed, err)
		}
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	if closed, err := hungUp(read); !closed || err != nil {
		t.Fatalf("with a closed end: %v, %v", closed, err)
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// signalAlways sends a thread the signal that Go's scheduler interrupts goroutines with, until stop is closed.
func signalAlways(thread int, stop <-chan struct{}, ended chan<- error) {
	for {
		select {
		case <-stop:
			ended <- nil
			return
		default:
		}
		if err := unix.Tgkill(unix.Getpid(), thread, unix.SIGURG); err != nil {
			ended <- err
			return
		}
	}
}
