// Package pidfd signals processes that this process did not start. A process that ends leaves its number to another
// one, so a signal by number may reach a stranger. Here each process is held (pidfd_open(2)) before its identity is
// confirmed, and gets the signal through what is held. Linux before 5.4 has no such calls as Go uses: there the process
// is signalled by number right after it is confirmed.
package pidfd

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
)

// Signal sends a signal to the process pid if meant confirms that it is the one that is meant. If that process ends
// after meant has been asked, no other one with its number gets the signal. A process that has ended is no error.
func Signal(pid int, meant func() bool, signal syscall.Signal) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer process.Release()
	if !meant() {
		return nil
	}
	if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// mostHeld bounds how many processes SignalListed holds at once: each costs a file descriptor.
const mostHeld = 128

// SignalListed sends a signal to every process in a list, such as that of a cgroup. It calls list, holds the processes,
// and signals those that list names again: a number that is no longer listed has become another's, or its process has
// left. A process that joins the list meanwhile is not signalled, so callers repeat the call until the list is empty.
// The error names the process that could not be signalled; list's own errors come back as they are.
func SignalListed(list func() ([]int, error), signal syscall.Signal) error {
	pids, err := list()
	if err != nil {
		return err
	}
	for some := range slices.Chunk(pids, mostHeld) {
		if err := signalSome(some, list, signal); err != nil {
			return err
		}
	}
	return nil
}

// signalSome holds the processes, lists again, and signals those of them that are listed.
func signalSome(pids []int, list func() ([]int, error), signal syscall.Signal) error {
	held := make(map[int]*os.Process, len(pids))
	defer func() {
		for _, process := range held {
			process.Release() //nolint:errcheck // it only closes the descriptor
		}
	}()
	for _, pid := range pids {
		if held[pid] != nil {
			continue // the lists of cgroup v1 may name a process twice
		}
		process, err := os.FindProcess(pid)
		if err != nil {
			return err
		}
		held[pid] = process
	}
	listed, err := list()
	if err != nil {
		return err
	}
	for _, pid := range listed {
		process, ok := held[pid]
		if !ok {
			continue
		}
		if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("signal process %d: %w", pid, err)
		}
	}
	return nil
}
