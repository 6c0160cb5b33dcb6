package pidfd

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// start starts a process that outlives the test if nobody signals it. The test's end kills it.
func start(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// endedBy fails the test unless the signal was the one that ended the process.
func endedBy(t *testing.T, cmd *exec.Cmd, want syscall.Signal) {
	t.Helper()
	if err := cmd.Wait(); err == nil || err.Error() != "signal: "+want.String() {
		t.Errorf("process %d ended with %v, want %v", cmd.Process.Pid, err, want)
	}
}

// interrupt fails the test if the process has got a signal before: the first one ends it.
func interrupt(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Errorf("process %d: %v", cmd.Process.Pid, err)
	}
	endedBy(t, cmd, syscall.SIGINT)
}

// TestSignal: a process that is meant gets the signal, another does not, and one that has ended meanwhile is no error.
func TestSignal(t *testing.T) {
	t.Parallel()
	other := start(t)
	if err := Signal(other.Process.Pid, func() bool { return false }, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	interrupt(t, other)
	meant := start(t)
	if err := Signal(meant.Process.Pid, func() bool { return true }, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	endedBy(t, meant, syscall.SIGTERM)
	ending := start(t)
	if err := Signal(ending.Process.Pid, func() bool {
		_ = ending.Process.Kill()
		_ = ending.Wait()
		return true
	}, syscall.SIGTERM); err != nil {
		t.Errorf("a process that ended meanwhile: %v", err)
	}
}

// TestSignalListed: processes that are listed both times get the signal, also when they are more than are held at once.
// One that has dropped out of the list does not, nor one that has just joined.
func TestSignalListed(t *testing.T) {
	t.Parallel()
	stays, leaves, joins, ends := start(t), start(t), start(t), start(t)
	first := []int{leaves.Process.Pid, ends.Process.Pid, stays.Process.Pid}
	many := make([]*exec.Cmd, mostHeld)
	for i := range many {
		many[i] = start(t)
		first = append(first, many[i].Process.Pid)
	}
	calls := 0
	err := SignalListed(func() ([]int, error) {
		if calls++; calls == 1 {
			return first, nil
		}
		_ = ends.Process.Kill()
		_ = ends.Wait()
		return append([]int{joins.Process.Pid}, first[1:]...), nil
	}, syscall.SIGTERM)
	if err != nil {
		t.Error(err)
	}
	endedBy(t, stays, syscall.SIGTERM)
	for _, cmd := range many {
		endedBy(t, cmd, syscall.SIGTERM)
	}
	interrupt(t, leaves)
	interrupt(t, joins)
	if calls != 3 {
		t.Errorf("%d lists for two rounds of processes", calls)
	}
}

// TestSignalListedErrors: a list that fails, at first or later, and a process that may not be signalled.
func TestSignalListedErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for fails := 1; fails <= 2; fails++ {
		cmd, calls := start(t), 0
		if err := SignalListed(func() ([]int, error) {
			if calls++; calls == fails {
				return nil, broken
			}
			return []int{cmd.Process.Pid}, nil
		}, syscall.SIGTERM); !errors.Is(err, broken) {
			t.Errorf("list %d fails: %v", fails, err)
		}
		interrupt(t, cmd)
	}
	cmd := start(t)
	err := SignalListed(func() ([]int, error) { return []int{cmd.Process.Pid}, nil }, syscall.Signal(1<<10))
	if !errors.Is(err, syscall.EINVAL) || !strings.HasPrefix(err.Error(), "signal process ") {
		t.Errorf("a signal that does not exist: %v", err)
	}
}
