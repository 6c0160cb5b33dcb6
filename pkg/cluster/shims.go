package cluster

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// containerdTasks has a directory per task in the node's /run. A shim writes init.pid into its own when the task is made.
const containerdTasks = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"

// endUnfinishedShims kills the shims whose first task was never made, because containerd died while it was being made. It must
// run while containerd is down: containerd 1.6 takes such a shim for a good one when it starts, forgets the sandbox, and leaves
// shim and directories for ever; of a shim that is dead it clears away everything. A shim that is still at it is killed, too:
// nobody waits for its answer.
func endUnfinishedShims(proc, tasks string, log *slog.Logger) {
	files, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "cmdline"))
	if err != nil {
		return
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		id := shimTask(line)
		if id == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(tasks, id, "init.pid")); !os.IsNotExist(err) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		log.Info("killing a shim that containerd's end left without a task", "task", id, "pid", pid)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			log.Warn("cannot kill a shim", "pid", pid, "error", err)
		}
	}
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
