package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has of the machine.
type usage struct {
	rss int64         // bytes
	cpu time.Duration // of all its threads since it began
}

// clockTick is the unit of times in proc_pid_stat(5): USER_HZ, which is 100 on every architecture that Go knows.
const clockTick = 10 * time.Millisecond

// readUsage reads what a process has; proc is where the kernel shows processes.
func readUsage(proc string, pid int) (usage, error) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return usage{}, err
	}
	_, rest, _ := strings.Cut(string(stat[max(0, strings.LastIndexByte(string(stat), ')')):]), " ") // after the name, from the state on
	fields := strings.Fields(rest)
	const user, system, resident = 11, 12, 21
	if len(fields) <= resident {
		return usage{}, fmt.Errorf("%s/stat: %d fields after the name", dir, len(fields))
	}
	var n [3]int64
	for i, field := range [...]int{user, system, resident} {
		if n[i], err = strconv.ParseInt(fields[field], 10, 64); err != nil {
			return usage{}, err
		}
	}
	return usage{rss: n[2] * int64(os.Getpagesize()), cpu: time.Duration(n[0]+n[1]) * clockTick}, nil
}

// hostPIDs returns, for the processes in the PID namespace of the process init, their pids here by their pids there.
func hostPIDs(proc string, init int) map[int]int {
	pids := map[int]int{}
	space, err := os.Readlink(filepath.Join(proc, strconv.Itoa(init), "ns", "pid"))
	if err != nil {
		return pids
	}
	dirs, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil {
		return pids
	}
	for _, dir := range dirs {
		if own, err := os.Readlink(filepath.Join(dir, "ns", "pid")); err != nil || own != space {
			continue
		}
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil {
			continue // it ended meanwhile
		}
		here, err := strconv.Atoi(filepath.Base(dir))
		if there := innermostPID(string(status)); err == nil && there != 0 {
			pids[there] = here
		}
	}
	return pids
}

// innermostPID returns a process's pid in its own namespace, the last in the line NSpid of proc_pid_status(5), or 0.
func innermostPID(status string) int {
	for line := range strings.Lines(status) {
		f := strings.Fields(line)
		if len(f) > 1 && f[0] == "NSpid:" {
			if pid, err := strconv.Atoi(f[len(f)-1]); err == nil {
				return pid
			}
		}
	}
	return 0
}
