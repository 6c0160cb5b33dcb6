package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is a process's use of the machine.
type Usage struct {
	RSS int64         // resident memory in bytes
	CPU time.Duration // of all its threads since it began
}

// clockTick is the unit of times in proc_pid_stat(5): USER_HZ, which is 100 on every architecture that Go supports.
const clockTick = 10 * time.Millisecond

// ReadUsage reads the usage of the process pid. proc is where the kernel shows processes.
func ReadUsage(proc string, pid int) (Usage, error) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return Usage{}, err
	}
	// The fields after the name, which may have spaces and parentheses itself: the first is the state.
	_, rest, _ := strings.Cut(string(stat[max(0, strings.LastIndexByte(string(stat), ')')):]), " ")
	fields := strings.Fields(rest)
	const user, system, resident = 11, 12, 21
	if len(fields) <= resident {
		return Usage{}, fmt.Errorf("%s/stat: %d fields after the name", dir, len(fields))
	}
	var n [3]int64
	for i, field := range [...]int{user, system, resident} {
		if n[i], err = strconv.ParseInt(fields[field], 10, 64); err != nil {
			return Usage{}, err
		}
	}
	return Usage{RSS: n[2] * int64(os.Getpagesize()), CPU: time.Duration(n[0]+n[1]) * clockTick}, nil
}

// HostPIDs maps the pids of processes in the PID namespace of the process init, as that namespace numbers them, to
// their pids here.
func HostPIDs(proc string, init int) map[int]int {
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

// innermostPID returns a process's pid in its own namespace: the last number in the line NSpid of proc_pid_status(5).
// It returns 0 if there is none.
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

// ProcessName returns the name of a process's command as the kernel keeps it, or "?" if the process has ended.
func ProcessName(pid int) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(data))
}
