package node

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/pidfd"
)

const (
	// containerdTasks has a directory per task in the node's /run. A shim writes the file runtime into it before it
	// mounts or starts anything for the task, and init.pid when the task is made.
	containerdTasks = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"
	// shimPatience bounds the wait for the kernel to end killed shims. containerd starts all the same if they have not
	// ended.
	shimPatience = 5 * time.Second
)

// clearUnfinishedTasks finishes what the death of containerd interrupted: the creation of tasks, and their end. It must
// run while containerd is down, since only that containerd could have continued.
//
//   - It kills a shim whose first task was never made, or that has no process of a container left. When containerd 1.6
//     starts, it takes such a shim for a good one, forgets the sandbox, and leaves shim and directories for ever;
//     after a dead shim it clears everything away. A shim that is still working is killed, too, because nothing waits
//     for its answer. While a sandbox is in use its own process runs, so no exit code of a container is lost.
//   - It removes the directory of a task that no shim began to make; nothing can be mounted in it. containerd clears
//     such a task away by means of a shim that wants to read the file runtime. That fails, and the directory would stay
//     until the next start.
func clearUnfinishedTasks(ctx context.Context, proc, tasks string, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, shimPatience)
	defer cancel()
	// Until there is none: a shim that is killed may have forked another, and one that is dying may still write.
	told := map[int]bool{}
	err := host.Poll(ctx, 10*time.Millisecond, func() (bool, error) {
		idle := idleShims(proc, tasks)
		for pid, task := range idle {
			if !told[pid] {
				told[pid] = true
				log.Info("killing a shim that containerd's end left without a container", "task", task, "pid", pid)
			}
			if err := pidfd.Signal(pid, func() bool { return taskOf(proc, pid) == task }, syscall.SIGKILL); err != nil {
				return false, fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
		return len(idle) == 0, nil
	})
	if err != nil {
		// No directory is removed then: a shim that still lives may be at work in its own.
		log.Warn("cannot end the shims without a container", "err", err)
		return
	}
	entries, err := os.ReadDir(tasks)
	if err != nil {
		return // containerd's first start
	}
	for _, e := range entries {
		dir := filepath.Join(tasks, e.Name())
		if _, err := os.Stat(filepath.Join(dir, "runtime")); !os.IsNotExist(err) {
			continue
		}
		log.Info("removing the directory of a task that no shim began to make", "task", e.Name())
		if err := os.RemoveAll(dir); err != nil {
			log.Warn("cannot remove the directory of a task", "directory", dir, "err", err)
		}
	}
}

// idleShims finds the shims that hold no container, by their pids, with the task that each was started for.
func idleShims(proc, tasks string) map[int]string {
	shims, parents := map[int]string{}, map[int]bool{}
	dirs, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil {
		return shims
	}
	for _, dir := range dirs {
		if stat, err := os.ReadFile(filepath.Join(dir, "stat")); err == nil {
			parents[parentIn(stat)] = true
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			if task := taskOf(proc, pid); task != "" {
				shims[pid] = task
			}
		}
	}
	// A shim drops out if it has a child and init.pid is there. Any error of Stat except a missing file counts as
	// there: to kill a good shim is worse than to leave a bad one.
	for pid, task := range shims {
		if _, err := os.Stat(filepath.Join(tasks, task, "init.pid")); parents[pid] && !os.IsNotExist(err) {
			delete(shims, pid)
		}
	}
	return shims
}

// parentIn returns the parent's pid from a process's stat (proc_pid_stat(5)), the second field after the name in
// parentheses.
func parentIn(stat []byte) int {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	pid, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return pid
}

// taskOf returns the task that the process was started for as a shim, or "" if it is another program or has ended.
func taskOf(proc string, pid int) string {
	line, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return ""
	}
	return shimTask(line)
}

// shimTask returns the task that a shim was started for, from its arguments, or "" for another program.
func shimTask(cmdline []byte) string {
	args := bytes.Split(cmdline, []byte{0})
	if filepath.Base(string(args[0])) != "containerd-shim-runc-v2" {
		return ""
	}
	for i, arg := range args[:len(args)-1] {
		if string(arg) == "-id" {
			return string(args[i+1])
		}
	}
	return ""
}
